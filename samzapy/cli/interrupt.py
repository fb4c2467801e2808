"""What a command that Ctrl-C ended says and exits with. Imports nothing: it is there before anything else is."""

EXIT_OF_SIGINT = 130
INTERRUPTED = "interrupted\n"
