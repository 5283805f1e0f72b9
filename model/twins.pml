/* Two processes of one broker name, and what an agent does with its lease.

   One server, one bundle, two broker names: an old and a new process use the name TWINS, and one
   process uses OTHER. A process asks for its lease, the store answers, the process hears it: three
   steps, and anything may happen between them, including a pause of any length. The process agrees
   with the store on what it owns (claims), and serves if it held its lease from before that until
   after it. The store may be closed and opened again, with or without the loss of its leases.
   Invariants:
     one owner   two processes never serve the bundle
     a way back  from every state: if the twins do nothing more, OTHER gets the bundle; and if both
                 ask for the name all the time, the new one gets the name

   Time. A tick takes one from every countdown, the processes' and the server's; between two ticks
   anything may happen. Margins, and clocks that run at different speeds, are left out, as in
   histories.pml. A tick that falls between asking and hearing makes the answer older.

   Records are not lost here (see histories.pml), and epochs do not count: a request that finds the
   record changed is refused, so only requests that the store answers late are late. That keeps the
   state space finite without a bound on the number of steps.

   The key of the twins' lease may be deleted. The store notes with each grant which session has the
   lease and until when, and goes by that.

   Cures, each switched off by a flag: NO_SUCCESSOR, OLD_SESSION_RENEWS, SWALLOW_LAPSE,
   SWALLOW_ASSERTED, COUNT_FROM_ANSWER, NO_NOTE. */

#define COUNTED 0
#define TWINS 1        /* names; sessions of TWINS are 1, the old process, and 2, the new one */
#define OTHER 2
#ifdef NO_NOTE
#define LEASED(name) (lease[name] > 0)
#else
#define LEASED(name) (lease[name] > 0 || (name == TWINS && rest > 0))
#endif
#include "rules.pml"

#ifndef LEASE
#define LEASE 2
#endif
#ifndef CLOSURES
#define CLOSURES 1
#endif
#ifndef DELETIONS
#define DELETIONS 0
#endif

#define NO_SESSION 0   /* the lease is kept for the next process of this name */

/* The store. */
bool open = true;
byte wait, closures, deletions;
short record;
byte lease[3], session[3];          /* of a name: ticks left, and the session that has it */
byte noted, rest;                   /* of TWINS: who got the lease last, and the ticks left by that */
byte successor[3], reserved[3];     /* the session that waits for it, and the ticks for which that counts */

/* The processes: 1 and 2 are the twins, 3 is that of OTHER. */
byte until[4];                      /* ticks for which it may serve, by its own clock, */
bool holds[4];                      /* what it was given, */
byte stage[4];                      /* if it has agreed with the store */
byte worth[4];                      /* ticks that a grant heard now is good for */
#define LAPSED 0   /* holds no lease, or had a gap in it */
#define HAS_LEASE 1
#define CLAIMED 2  /* has asked for what it owns, and not checked its lease since */
#define AGREED 3

#define SERVES(p) (stage[p] == AGREED && holds[p] && until[p] > 0)
#define ONE_OWNER assert(SERVES(1) + SERVES(2) + SERVES(3) <= 1)

/* The answers of lease.lua. */
#define NONE 0
#define HELD 1
#define ASSERTED 2
#define WAITING 3
#define SUPERSEDED 4

/* Who has the lease, as the script sees it. */
#ifdef NO_NOTE
#define HOLDER(name) session[name]
#else
#define HOLDER(name) (name == TWINS && lease[name] == 0 && rest > 0 -> noted : session[name])
#endif

#ifdef NO_SUCCESSOR
#define OLDER_LIVES(name, mine) false
#else
#define OLDER_LIVES(name, mine) (HOLDER(name) != NO_SESSION && HOLDER(name) != mine)
#endif

#ifdef OLD_SESSION_RENEWS
#define RESERVE(name, mine)
#else
#define RESERVE(name, mine) successor[name] = mine; reserved[name] = LEASE
#endif

/* lease.lua; `gap`: this session did not have the lease before. */
inline renew(name, mine) {
  gap = session[name] != mine;
  if
  :: HOLDER(name) > mine || successor[name] > mine -> answer = SUPERSEDED
  :: else ->
     if
     :: OLDER_LIVES(name, mine) ->
        answer = WAITING; RESERVE(name, mine)
     :: else ->
        answer = (open -> HELD : ASSERTED); session[name] = mine; lease[name] = LEASE;
        if :: name == TWINS -> noted = mine; rest = LEASE :: else fi
     fi
  fi
}

#ifdef SWALLOW_LAPSE
#define NOTICED(p) (stage[p] != CLAIMED)
#else
#define NOTICED(p) true
#endif
#ifdef SWALLOW_ASSERTED
#define LAPSE_COUNTS_WHILE_CLOSED false
#else
#define LAPSE_COUNTS_WHILE_CLOSED true
#endif

inline serve_nothing(p) { stage[p] = LAPSED; holds[p] = false }

/* How the agent uses the answer. */
inline hear(p) {
  if
  :: answer == HELD ->
     if
     :: (gap || until[p] == 0) && NOTICED(p) -> holds[p] = false; stage[p] = HAS_LEASE
     :: else -> stage[p] = (stage[p] < CLAIMED -> HAS_LEASE : AGREED)
     fi
  :: answer == ASSERTED ->
     if  /* a closed store gives nothing to anyone: a lease lost only there leaves no gap */
     :: (until[p] == 0 && LAPSE_COUNTS_WHILE_CLOSED) || stage[p] != AGREED -> serve_nothing(p)
     :: else
     fi
  :: answer == SUPERSEDED -> serve_nothing(p)
  :: else
  fi;
  if :: answer == HELD || answer == ASSERTED -> until[p] = worth[p] :: else fi
}

inline heard(p) { worth[p] = 0; gap = false; answer = (answer == SUPERSEDED -> answer : NONE) }

/* lua/transition, asked by a process for its name. */
inline ask(event, name, mine) {
  accepted = false;
  if
  :: open && session[name] == mine ->
     judge(record, event, name, name, 1, true);
     if :: accepted -> record = made :: else fi
  :: else
  fi
}

/* A lookup finds that no living broker has the bundle. */
inline take(name) {
  judge(record, ASSIGN, name, name, 1, true);
  if :: accepted -> record = made :: else fi
}
#define NOBODY_LIVING (open && !LEASED(OWNER(record)))

inline forget_note() { noted = NO_SESSION; rest = 0 }

proctype Twin(byte p, mine) {
  byte answer; bool gap, given_it;
  do
  :: d_step { answer != SUPERSEDED -> worth[p] = LEASE };   /* asks for its lease */
     if
     :: d_step { renew(TWINS, mine) };                       /* the store answers */
        if
        :: d_step { hear(p); ONE_OWNER; heard(p) }           /* it hears that, */
        :: d_step { heard(p) }                               /* or never does */
        fi
     :: d_step { heard(p) }                                  /* the request is lost */
     fi
  :: d_step { stage[p] == HAS_LEASE -> ask(CLAIM, TWINS, mine); given_it = accepted };
     d_step { holds[p] = given_it; stage[p] = CLAIMED; given_it = false }
  :: d_step { stage[p] == AGREED && !holds[p] && STATE(record) == ASSIGNING ->
       ask(SERVE, TWINS, mine); given_it = accepted };       /* it was told to load the bundle */
     d_step { holds[p] = given_it; given_it = false; ONE_OWNER }
  :: d_step { NOBODY_LIVING && LEASED(TWINS) -> take(TWINS) }
  :: d_step { serve_nothing(p); until[p] = 0 };              /* killed, or stopped: its lease */
     if
     :: break                                                /* runs out, */
     :: d_step { session[TWINS] == mine -> session[TWINS] = NO_SESSION; forget_note() }; break
                                                             /* is left to the next process, */
     :: d_step { session[TWINS] == mine -> session[TWINS] = NO_SESSION; lease[TWINS] = 0;
                 forget_note() }; break
     fi                                                      /* or is given up */
  od
}

/* The same in fewer steps: this model is about the twins' steps. */
proctype Other() {
  byte answer; bool gap;
  do
  :: d_step { worth[3] = LEASE; renew(OTHER, 1); hear(3); ONE_OWNER; heard(3) }
  :: d_step { stage[3] == HAS_LEASE -> ask(CLAIM, OTHER, 1); holds[3] = accepted; stage[3] = CLAIMED }
  :: d_step { stage[3] == AGREED && !holds[3] && STATE(record) == ASSIGNING ->
       ask(SERVE, OTHER, 1); holds[3] = accepted; ONE_OWNER }
  :: d_step { NOBODY_LIVING && LEASED(OTHER) -> take(OTHER) }
  od
}

proctype Gate() {
  do
  :: d_step { open && closures < CLOSURES -> closures++; open = false; wait = LEASE }
  :: d_step { open && closures < CLOSURES -> closures++; open = false; wait = LEASE;
       lease[1] = 0; session[1] = 0; successor[1] = 0; reserved[1] = 0; forget_note();
       lease[2] = 0; session[2] = 0; successor[2] = 0; reserved[2] = 0 }
  :: d_step { !open && wait == 0 -> open = true }
  :: d_step { lease[TWINS] > 0 && deletions < DELETIONS -> deletions++;
       lease[TWINS] = 0; session[TWINS] = NO_SESSION }        /* somebody deletes the key */
  od
}

inline less(countdown) { if :: countdown > 0 -> countdown-- :: else fi }

inline tick() {
  less(wait); less(lease[1]); less(lease[2]); less(reserved[1]); less(reserved[2]);
  less(rest); if :: rest == 0 -> noted = NO_SESSION :: else fi;
  less(until[1]); less(until[2]); less(until[3]);
#ifndef COUNT_FROM_ANSWER
  less(worth[1]); less(worth[2]);
#endif
  if :: lease[1] == 0 -> session[1] = NO_SESSION :: else fi;
  if :: lease[2] == 0 -> session[2] = NO_SESSION :: else fi;
  if :: reserved[1] == 0 -> successor[1] = NO_SESSION :: else fi
}

proctype Clock() {
  do
  :: d_step { tick() }
  od
}

/* The twins do nothing more; OTHER starts again, as it does after every fault. */
inline heal() {
  serve_nothing(3); until[3] = 0; session[OTHER] = 1;
  for (i : 1 .. LEASE + 1) {
    tick(); open = true; worth[3] = LEASE; renew(OTHER, 1); hear(3)
  }
  assert(!SERVES(1) && !SERVES(2));
  judge(record, ASSIGN, OTHER, OTHER, 1, true);
  if :: accepted -> record = made :: else fi;
  ask(CLAIM, OTHER, 1); assert(accepted);
  holds[3] = true; stage[3] = CLAIMED;
  renew(OTHER, 1); hear(3);
  assert(SERVES(3))
}

/* Both keep asking for the name, the old one first. */
inline hand_on() {
  open = true;
  for (i : 1 .. LEASE + 1) {
    renew(TWINS, 1); renew(TWINS, 2); tick()
  }
  renew(TWINS, 2);
  assert(answer == HELD)
}

proctype WayBack() {
  byte i, answer; bool gap;
  do
  :: d_step { SUPPOSE; heal(); AND_BACK; i = 0; answer = 0; gap = false }
  :: d_step { SUPPOSE; hand_on(); AND_BACK; i = 0; answer = 0; gap = false }
  od
}

init {
  atomic {
    run Twin(1, 1); run Twin(2, 2); run Other(); run Gate(); run Clock(); WAY_BACK
  }
}
