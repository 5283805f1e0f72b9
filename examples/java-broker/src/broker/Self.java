package broker;

/** Who this process is; the session is the time at which it started. */
record Self(String cluster, String broker, String session) {}
