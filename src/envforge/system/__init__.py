"""The one door to the world: processes, sockets, the clock and the process environment."""
