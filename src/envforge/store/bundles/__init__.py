"""Bundles: one file that is a tar and a shell script, or several that join to one."""
