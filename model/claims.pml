/* The life of one record under every event of the table, and the effect of a step of the server's clock.

   One server, always open; one bundle, three brokers and the job, which ask for every event of the
   table. Brokers are killed and start again. The server's clock jumps ahead: every lease ends at once
   in the store, while the brokers keep counting theirs by their own clocks. Invariants:
     one owner   two brokers never serve the bundle
     a way back  from every state: if only one broker is left, it gets the bundle; the job is
                 needed only for a quarantined or deleted bundle

   Time. A tick takes one from every lease, the brokers' and the server's alike. A caller that takes a
   bundle from a broker whose lease is gone sends its own estimate of the server's time, based on
   looks over at least one lease (trimtab/store/server_time.py). So it agrees with the server's clock
   only if that has been `calm` for a lease; by then every lease that the jump cut short has ended by
   the brokers' clocks too. Jumps back only make leases longer, and the margin covers jumps below it:
   both are left out.

   Epochs do not count here: a request that finds another epoch changes nothing, so only requests that
   arrive in time are modelled. The state space is finite without a bound on steps.

   A broker stops serving before it gives a bundle away (agent/commands/actions.py); split_merge.pml
   has what comes between a retired bundle and its parts.

   Cures, each switched off by a flag: NO_SECOND_CLOCK, SERVE_WHILE_GIVING. */

#define COUNTED 0
#define LEASED(b) (lease[b] > 0)
#include "rules.pml"

#ifndef LEASE
#define LEASE 2
#endif

short record;
byte lease[4];     /* ticks left in the store; NOBODY has none */
byte until[4];     /* ticks for which a broker may serve, by its own clock, */
bool holds[4];     /* what it was given */
byte calm = LEASE; /* ticks since the server's clock jumped, LEASE at most */

#define SERVES(b) (until[b] > 0 && holds[b])
#define ONE_OWNER assert(SERVES(1) + SERVES(2) + SERVES(3) <= 1)

#ifdef NO_SECOND_CLOCK
#define SURE true
#else
#define SURE (calm == LEASE)
#endif
#ifdef SERVE_WHILE_GIVING
#define STOPS_BEFORE(event) false
#else
#define STOPS_BEFORE(event) (event == RELEASE || event == HAND_OVER || event == RETIRE)
#endif

inline renew(b) {
  if :: until[b] == 0 || lease[b] == 0 -> holds[b] = false :: else fi;
  lease[b] = LEASE; until[b] = LEASE
}

inline ask(event, asker, other) {
  judge(record, event, asker, other, 1, SURE);
  if :: accepted -> record = made :: else fi
}

/* A broker's answer to a command, or its claim. */
inline act(event, b) {
  if :: STOPS_BEFORE(event) -> holds[b] = false :: else fi;
  ask(event, b, b);
  if :: accepted && (event == CLAIM || event == SERVE) -> holds[b] = true :: else fi;
  ONE_OWNER
}

#define HAS_TIME(b) (until[b] > 0 && LEASED(b))
#define IS_TO(b, state) (HAS_TIME(b) && OWNER(record) == b && STATE(record) == state)

proctype Broker(byte b) {
  do
  :: d_step { renew(b) }
  :: d_step { until[b] = 0; holds[b] = false }                       /* killed */
  :: d_step { HAS_TIME(b) -> act(CLAIM, b) }
  :: d_step { IS_TO(b, ASSIGNING) -> act(SERVE, b) }
  :: d_step { IS_TO(b, ASSIGNING) -> act(DECLINE, b) }
  :: d_step { IS_TO(b, OWNED) -> act(RELEASE, b) }
  :: d_step { IS_TO(b, RELEASING) -> act(RELEASE, b) }
  :: d_step { IS_TO(b, RELEASING) -> act(HAND_OVER, b) }
  :: d_step { IS_TO(b, RELEASING) -> act(DECLINE, b) }
  :: d_step { IS_TO(b, SPLITTING) || IS_TO(b, MERGING) -> act(RETIRE, b) }
  :: d_step { IS_TO(b, SPLITTING) || IS_TO(b, MERGING) -> act(DECLINE, b) }
  :: d_step { LEASED(b) -> ask(ASSIGN, b, b) }                       /* a lookup */
  od
}

proctype Job() {
  do
  :: d_step { ask(ASSIGN, THE_JOB, 1) }
  :: d_step { ask(ASSIGN, THE_JOB, 2) }
  :: d_step { ask(ASSIGN, THE_JOB, 3) }
  :: d_step { ask(UNLOAD, THE_JOB, NOBODY) }
  :: d_step { ask(TRANSFER, THE_JOB, 1) }
  :: d_step { ask(TRANSFER, THE_JOB, 2) }
  :: d_step { ask(TRANSFER, THE_JOB, 3) }
  :: d_step { ask(SPLIT, THE_JOB, NOBODY) }
  :: d_step { ask(MERGE, THE_JOB, NOBODY) }
  :: d_step { ask(LOSE, THE_JOB, NOBODY) }
  :: d_step { ask(KEEP, THE_JOB, NOBODY) }
  :: d_step { ask(QUARANTINE, THE_JOB, NOBODY) }
  :: d_step { ask(READMIT, THE_JOB, NOBODY) }
  :: d_step { ask(RESTORE, THE_JOB, NOBODY) }
  od
}

inline less(countdown) { if :: countdown > 0 -> countdown-- :: else fi }

inline tick() {
  less(lease[1]); less(lease[2]); less(lease[3]);
  less(until[1]); less(until[2]); less(until[3]);
  if :: calm < LEASE -> calm++ :: else fi;
  if :: until[1] == 0 -> holds[1] = false :: else fi;
  if :: until[2] == 0 -> holds[2] = false :: else fi;
  if :: until[3] == 0 -> holds[3] = false :: else fi
}

proctype Clock() {
  do
  :: d_step { tick() }
  :: d_step { lease[1] = 0; lease[2] = 0; lease[3] = 0; calm = 0 }   /* the server's clock jumps */
  od
}

/* Only broker 1 is left, and the clock jumps no more. */
inline heal() {
  for (i : 1 .. LEASE) { tick() }
  renew(1);
  ask(READMIT, THE_JOB, NOBODY); ask(RESTORE, THE_JOB, NOBODY);
  ask(ASSIGN, 1, 1);
  ask(CLAIM, 1, 1);
  assert(accepted && OWNER(record) == 1 && STATE(record) == OWNED)
}

proctype WayBack() {
  byte i;
  do
  :: d_step { SUPPOSE; heal(); AND_BACK; i = 0 }
  od
}

init {
  atomic { run Broker(1); run Broker(2); run Broker(3); run Job(); run Clock(); WAY_BACK }
}
