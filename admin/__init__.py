"""For people: the command line and the views."""
