"""Files of other tools to a first profile: what a profile can say is carried over, everything else is told."""
