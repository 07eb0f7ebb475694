"""The client: it traces programs, numbers its own arrays, and sends one message for each run of a program."""
