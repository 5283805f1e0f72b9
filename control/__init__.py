"""What people ask of clusters and tell them: queries and intents, for the terminal and for HTTP.

How an answer looks is the caller's: `admin` prints it, `api` serves it. Nothing here decides.
"""
