"""Plays a job and a Redis against a broker in any language, and says which rules it keeps."""
