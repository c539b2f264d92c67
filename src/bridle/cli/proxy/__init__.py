"""`bridle mcp stdio`: MCP on stdin and stdout, carried to the server that is up, whichever that is.

`Proxy` has the calls, `Way` the server, `Pipes` the client; `messages` says what a line is.
"""
