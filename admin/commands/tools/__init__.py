"""Commands that work on this machine: servers' set-up, the API's own server, replays, simulations.

Commands that ask a control plane are in `admin.commands`, one file for each resource.
"""
