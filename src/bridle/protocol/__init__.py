"""The control protocol of the Claude Code CLI, without any I/O. `Connection` is the way in."""
