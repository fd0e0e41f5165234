"""Remember: the layout of the home folder, locks, journals, snapshots and locks that restore them."""
