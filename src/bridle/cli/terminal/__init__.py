"""What a person sees of an agent in a terminal: of one that runs here, or behind a server.

`rendering` says what an entry of the transcript looks like, `printer` when it is shown, `screen`
how it gets to the terminal. `run`, `attach` and `logs` are the commands.
"""
