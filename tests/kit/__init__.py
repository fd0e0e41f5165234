"""The test kit: real wheels, real index pages on loopback, the real command in a child process."""
