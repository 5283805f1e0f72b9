/* The store and its histories: failover, failback, lost writes, an old master that keeps running.

   Two servers of the store, two brokers, one bundle, one job. A server replicates everything it holds,
   at some time. A promoted server lacks what was not replicated, and draws a new history. The master
   that it replaces may keep running, and brokers may ask it. Servers die, restart with and without
   their data, and are emptied (FLUSHALL). A master hangs, and wakes. The records alone are deleted
   (DEL). Brokers and jobs are killed at any step. Invariants:
     one owner    two brokers never serve the bundle
     one epoch    every epoch that is given out is above all earlier ones
     a way back   from every state, FAULTS spent or not, the schedule heal() ends in service

   Time. A tick takes one from every countdown, the brokers' and the servers' alike; between
   two ticks anything may happen in any order. The seconds of margin (a broker stops one before its
   lease ends, a rebuild waits one more) cover clocks that run at different speeds. The model has
   neither margins nor such clocks, which is the worst that the margins allow. A renewal is one step,
   because then a broker counts exactly what the store grants; see twins.pml for what comes between
   asking and hearing.

   Assumed, each lifted by a flag that shows what happens then:
     -DFORGOTTEN_REPLICAS  a master that keeps running after another was promoted remembers that it has
                           a replica, and so does the copy that was promoted
     -DJOB_ASKS_OLD_MASTER the job asks the server that was promoted last
     -DOLD_MASTER_REJOINED a master that was left behind gets its replica back only as a replica itself

   Cures, each switched off by a flag: RUN_ID_ONLY, NO_REPLICA_CHECK, FRESH_SHORTCUT,
   NO_SPENT_ON_FLUSH, NO_MARK, TRUST_LAG, NO_LAG_IN_WAIT, NO_WAIT, NO_ASSERTION, ASSERT_ONCE,
   CARRY_ON. */

#define COUNTED 1
#define LEASED(b) (store[s].lease[b] > 0)
#include "rules.pml"

#ifndef FAULTS
#define FAULTS 2       /* promotions, deaths, restarts and emptyings of servers */
#endif
#ifndef HANGS
#define HANGS 0        /* of a master */
#endif
#ifndef DELETIONS
#define DELETIONS 0    /* of the records */
#endif
#ifndef KILLS
#define KILLS 1        /* of a broker, and as many of the job */
#endif
#ifndef CHANGES
#define CHANGES 3      /* of the record */
#endif
#ifndef LEASE
#define LEASE 3        /* ticks, more than LAG */
#endif
#define LAG 2          /* ticks for which a master still counts a lost replica */

/* Ticks for which a store is closed at least. */
#ifdef NO_WAIT
#define WAIT(s) 0
#elif defined(NO_LAG_IN_WAIT)
#define WAIT(s) LEASE
#else
#define WAIT(s) (LEASE + LAG)  /* the servers have been replicas of one another */
#endif

/* The data that a server holds and a replica copies. History 0: none. */
typedef Store {
  byte generation;     /* of the job that opened it, */
  byte opened;         /* on this history, */
  bool replicas;       /* one replica must have acknowledged recently; */
  bool noted;          /* this history has had a replica, as a request found */
  byte rebuilt;        /* the history being rebuilt, */
  byte wait;           /* for this many ticks at least */
  short record;
  bool marked;         /* it was not deleted since its rebuild began */
  byte lease[3];
  byte said_to[3];     /* the broker has said what it saw to this history: */
  short said[3]
}
Store store[2];
byte history[2];       /* master_replid; with RUN_ID_ONLY the run_id */
bool up[2], master[2];
bool hangs[2];         /* it answers nothing, and reads nothing that arrives */
byte acked[2];         /* ticks for which the master counts its replica as near */
bool linked;           /* the newest master has the other one as its replica */
byte newest;           /* the server promoted last */

byte until[3];         /* ticks for which a broker may serve, by its own clock, */
bool holds[3];         /* what it was given; */
byte on[3];            /* the history that its lease is of */
short seen[3];         /* on its disk: the last record it knows */

byte generation;       /* the job's, claimed in Kafka */
byte opened_on;        /* the history it opened with that generation */
byte restored_on;      /* the history it has restored the records on */
short journal;         /* the newest record that reached Kafka */

byte faults, hung, deletions, kills[2];
byte highest;          /* the highest epoch ever given out */
bool supposing;        /* within heal(): no bounds */

#define SERVES(b) (until[b] > 0 && holds[b])
#define ONE_OWNER assert(!(SERVES(1) && SERVES(2)))
#define ANSWERS(s) (up[s] && master[s] && !hangs[s])
#ifdef NO_MARK
#define MARKED(s) true
#else
#define MARKED(s) store[s].marked
#endif
#define OPEN(s) (ANSWERS(s) && store[s].opened == history[s] && MARKED(s))
#define KNOWS(s) (store[s].replicas || store[s].noted)
#define NOTE_REPLICAS(s) store[s].noted = store[s].noted || (linked && newest == s)
#ifdef NO_REPLICA_CHECK
#define ISOLATED(s) false
#else
#define ISOLATED(s) (KNOWS(s) && acked[s] == 0)
#endif
#define MAY_FAIL (faults < FAULTS)
#define BOUNDED (COUNTER(store[s].record) < CHANGES || supposing)

inline drop_what_was_said(s) {
  store[s].said_to[1] = 0; store[s].said[1] = 0; store[s].said_to[2] = 0; store[s].said[2] = 0
}

/* What counts on one history only is useless on the next, which is closed for a lease at least. */
inline drop_what_was_of_a_history(s) {
  store[s].noted = false; store[s].rebuilt = 0; store[s].wait = 0; store[s].lease[1] = 0; store[s].lease[2] = 0;
  drop_what_was_said(s)
}

#ifdef ASSERT_ONCE
#define SAW_MORE(b, s) false
#else
#define SAW_MORE(b, s) (store[s].said[b] != seen[b])
#endif

/* The previous lease is of another history. It ends while a master that was left behind may still
   give the bundle away. */
#ifdef CARRY_ON
#define STRADDLES(b, s) false
#else
#define STRADDLES(b, s) (on[b] != history[s] && until[b] < LAG)
#endif

/* lease.lua, and how the agent uses its answer. */
inline renew(b, s) {
  NOTE_REPLICAS(s);
  if
  :: ISOLATED(s)
  :: else ->
     if
     :: !OPEN(s) && (store[s].said_to[b] != history[s] || SAW_MORE(b, s)) ->
          store[s].said_to[b] = history[s]; store[s].said[b] = seen[b]
     :: else
     fi;
     if  /* during a gap others may get the bundle, unless the store is closed */
     :: until[b] == 0 || (OPEN(s) && store[s].lease[b] == 0) || STRADDLES(b, s) -> holds[b] = false
     :: else
     fi;
     store[s].lease[b] = LEASE; until[b] = LEASE; on[b] = history[s]
  fi
}

/* lua/transition, asked by broker b for itself, and how the agent uses the answer. */
inline ask(event, b, s) {
  NOTE_REPLICAS(s);
  judge(store[s].record, event, b, b, store[s].generation, true);
  if
  :: accepted && !ISOLATED(s) && BOUNDED ->
     ONE_EPOCH(EPOCH(made), highest);
     store[s].record = made;
     if
     :: event == CLAIM && EPOCH(made) > EPOCH(seen[b]) -> seen[b] = made; holds[b] = true
     :: else
     fi
  :: else
  fi
}

/* It agrees between two renewals at one server. */
#define MAY_CLAIM(b, s) \
  (OPEN(s) && store[s].lease[b] > 0 && until[b] > 0 && on[b] == history[s] && !holds[b])
#define MAY_TAKE(b, s) (OPEN(s) && store[s].lease[b] > 0 && OWNER(store[s].record) != b)

/* A broker renews its lease and agrees on what it owns; its lookups take unowned bundles. */
proctype Broker(byte b) {
  byte s;
  do
  :: d_step { ANSWERS(0) -> s = 0; renew(b, s); s = 0 }
  :: d_step { ANSWERS(1) -> s = 1; renew(b, s); s = 0 }
  :: d_step { MAY_CLAIM(b, 0) -> s = 0; ask(CLAIM, b, s); ONE_OWNER; s = 0 }
  :: d_step { MAY_CLAIM(b, 1) -> s = 1; ask(CLAIM, b, s); ONE_OWNER; s = 0 }
  :: d_step { MAY_TAKE(b, 0) -> s = 0; ask(ASSIGN, b, s); s = 0 }
  :: d_step { MAY_TAKE(b, 1) -> s = 1; ask(ASSIGN, b, s); s = 0 }
  :: d_step { kills[0] < KILLS -> kills[0]++; until[b] = 0; on[b] = 0; holds[b] = false }
  :: d_step { kills[0] < KILLS -> kills[0]++; until[b] = 0; on[b] = 0; holds[b] = false; seen[b] = 0 }
  od
}

#ifdef FRESH_SHORTCUT
#define FRESH (store[s].record == 0 && journal == 0)
#else
#define FRESH false
#endif

/* This generation was opened on other data, or on data that is gone. */
#ifdef NO_SPENT_ON_FLUSH
#define SPENT(s) ((opened_on != 0 && opened_on != history[s]) || \
  (store[s].generation == generation && store[s].opened != 0 && !OPEN(s)))
#else
#define SPENT(s) ((opened_on != 0 && (opened_on != history[s] || !OPEN(s) || \
    store[s].generation != generation)) || \
  (store[s].generation == generation && store[s].opened != 0 && !OPEN(s)))
#endif

inline opens(s) {
  store[s].opened = history[s]; opened_on = history[s];
  store[s].rebuilt = 0; restored_on = 0;
  drop_what_was_said(s)
}

inline restores(s) {
  newer(store[s].record, journal);
#ifndef NO_ASSERTION
  if :: store[s].said_to[1] == history[s] -> newer(store[s].record, store[s].said[1]) :: else fi;
  if :: store[s].said_to[2] == history[s] -> newer(store[s].record, store[s].said[2]) :: else fi;
#endif
  restored_on = history[s]
}

inline newer(mine, theirs) {
  if :: EPOCH(theirs) > EPOCH(mine) -> mine = theirs :: else fi
}

/* Replicas of the previous history count until the job looks, as in open.lua. */
#define COUNT_REPLICAS(s, besides) store[s].replicas = linked || besides

/* open.lua and the job that calls it: one look at the store. */
inline open(s) {
  if
  :: SPENT(s) -> store[s].opened = 0; generation++; opened_on = 0; restored_on = 0
  :: !SPENT(s) && OPEN(s) ->
     store[s].generation = generation; opened_on = history[s];
     store[s].replicas = store[s].replicas || linked
  :: else ->
     if
     :: store[s].rebuilt != history[s] ->
        store[s].wait = (FRESH -> 0 : WAIT(s));
        store[s].rebuilt = history[s]; COUNT_REPLICAS(s, store[s].noted)
     :: else -> COUNT_REPLICAS(s, store[s].replicas)
     fi;
     store[s].generation = generation; store[s].opened = 0;
     if
     :: store[s].wait > 0 -> restored_on = 0; store[s].marked = true
     :: store[s].wait == 0 && (restored_on != history[s] || !MARKED(s)) ->
        store[s].marked = true; restores(s)
     :: else -> opens(s)
     fi
  fi
}

proctype Job() {
  byte s;
  do
  :: d_step { ANSWERS(newest) -> s = newest; open(s); s = 0 }
#ifdef JOB_ASKS_OLD_MASTER
  :: d_step { ANSWERS(1 - newest) -> s = 1 - newest; open(s); s = 0 }
#endif
  :: d_step { ANSWERS(0) && journal != store[0].record -> newer(journal, store[0].record) }
  :: d_step { ANSWERS(1) && journal != store[1].record -> newer(journal, store[1].record) }
  :: d_step { kills[1] < KILLS -> kills[1]++; generation++; opened_on = 0; restored_on = 0 }
  od
}

inline copy(from, to) {
  store[to].generation = store[from].generation; store[to].opened = store[from].opened;
  store[to].replicas = store[from].replicas; store[to].record = store[from].record;
  store[to].marked = store[from].marked
}

inline delete(s) { store[s].record = 0; store[s].marked = false }

inline forget(s) {
  store[s].generation = 0; store[s].opened = 0; store[s].replicas = false; delete(s);
  drop_what_was_of_a_history(s)
}

/* A number that no one remembers: it only matters whether two are equal. */
inline draw_history(s) {
  drop_what_was_of_a_history(s);
  history[s] = 1;
  do
  :: (s == 0 -> history[1] : history[0]) == history[s] || store[0].opened == history[s] ||
     store[1].opened == history[s] || opened_on == history[s] || restored_on == history[s] ||
     on[1] == history[s] || on[2] == history[s] ->
       history[s]++
  :: else -> break
  od
}

#ifdef RUN_ID_ONLY
#define DRAWS_WHEN_PROMOTED false
#else
#define DRAWS_WHEN_PROMOTED true
#endif

inline promote(s) {
  master[s] = true; newest = s; linked = false; acked[s] = 0;
  if :: DRAWS_WHEN_PROMOTED -> draw_history(s) :: else fi
}

/* Leaving as a master: the server is none any more, or can do nothing more. */
#ifdef RUN_ID_ONLY
#define KEEPS_ITS_NAME true
#else
#define KEEPS_ITS_NAME false
#endif

inline leave(s) {
  drop_what_was_of_a_history(s); master[s] = false; acked[s] = 0;
  if :: KEEPS_ITS_NAME :: else -> history[s] = 0 fi
}

/* The other server becomes a replica of the newest master, with all of its data. */
inline join() {
  up[1 - newest] = true; hangs[1 - newest] = false; linked = true; acked[newest] = LAG;
  leave(1 - newest); copy(newest, 1 - newest)
}

inline restart(s) { up[s] = true; draw_history(s); acked[s] = (linked -> LAG : 0) }

/* Its replica, if it still has one, acknowledges what the master writes from here on. */
inline wake(s) { hangs[s] = false; if :: linked && newest == s -> acked[s] = LAG :: else fi }

#ifdef FORGOTTEN_REPLICAS
#define KNOWS_OF_REPLICAS true
#define MAY_FORGET(s) true
#else
#define KNOWS_OF_REPLICAS (KNOWS(newest) && store[1 - newest].replicas)
#define MAY_FORGET(s) (s == newest)
#endif

#define MAY_PROMOTE (MAY_FAIL && linked && (!up[newest] || KNOWS_OF_REPLICAS))

proctype Servers() {
  byte s;
  do
  :: d_step { linked && ANSWERS(newest) -> copy(newest, 1 - newest) }
  :: d_step { MAY_PROMOTE -> faults++; s = 1 - newest; promote(s); s = 0 }
  :: d_step { !linked && ANSWERS(newest) -> join() }
  :: d_step { MAY_FAIL && up[newest] -> faults++; up[newest] = false; hangs[newest] = false }
  :: d_step { !up[newest] -> restart(newest) }
  :: d_step { MAY_FAIL && ANSWERS(0) -> faults++; restart(0) }
  :: d_step { MAY_FAIL && ANSWERS(1) -> faults++; restart(1) }
  :: d_step { MAY_FAIL && ANSWERS(0) && MAY_FORGET(0) -> faults++; forget(0); restart(0) }
  :: d_step { MAY_FAIL && ANSWERS(1) && MAY_FORGET(1) -> faults++; forget(1); restart(1) }
  :: d_step { MAY_FAIL && ANSWERS(0) && MAY_FORGET(0) -> faults++; forget(0) }
  :: d_step { MAY_FAIL && ANSWERS(1) && MAY_FORGET(1) -> faults++; forget(1) }
  :: d_step { hung < HANGS && ANSWERS(0) -> hung++; hangs[0] = true }
  :: d_step { hung < HANGS && ANSWERS(1) -> hung++; hangs[1] = true }
  :: d_step { hangs[0] -> wake(0) }
  :: d_step { hangs[1] -> wake(1) }
  :: d_step { deletions < DELETIONS && ANSWERS(0) -> deletions++; delete(0) }
  :: d_step { deletions < DELETIONS && ANSWERS(1) -> deletions++; delete(1) }
#ifdef OLD_MASTER_REJOINED
  :: d_step { !linked && ANSWERS(1 - newest) -> newest = 1 - newest; join() }
#endif
  od
}

inline less(countdown) { if :: countdown > 0 -> countdown-- :: else fi }

/* A master that was left behind and finds itself isolated can do nothing more. */
#ifdef OLD_MASTER_REJOINED
#define IS_OUT(s) false
#else
#define IS_OUT(s) (up[s] && master[s] && ISOLATED(s))
#endif

/* are_in_touch of history.lua: a master that hung goes by what it wrote before, which grows old meanwhile.
   If it went by the lag, acknowledgements that waited in its sockets would look new when it reads them. */
#ifdef TRUST_LAG
#define LOOKS_NEW(s) hangs[s]
#else
#define LOOKS_NEW(s) false
#endif
#define HEARS(s) (linked && newest == s && !hangs[s])

inline tick() {
  less(until[1]); less(until[2]);
  less(store[0].lease[1]); less(store[0].lease[2]); less(store[0].wait);
  less(store[1].lease[1]); less(store[1].lease[2]); less(store[1].wait);
  if :: HEARS(0) || LOOKS_NEW(0) :: else -> less(acked[0]) fi;
  if :: HEARS(1) || LOOKS_NEW(1) :: else -> less(acked[1]) fi;
  if :: until[1] == 0 -> holds[1] = false; on[1] = 0 :: else fi;
  if :: until[2] == 0 -> holds[2] = false; on[2] = 0 :: else fi;
  if :: IS_OUT(1 - newest) -> forget(1 - newest); leave(1 - newest); up[1 - newest] = false;
     hangs[1 - newest] = false
     :: else
  fi
}

proctype Clock() {
  do
  :: d_step { tick() }
  od
}

/* The schedule when nothing more breaks: the servers come back, the job opens the store, brokers
   renew, a lookup asks for the bundle. */
inline heal(s) {
  supposing = true;
  s = newest;
  if :: !up[s] -> restart(s) :: hangs[s] -> wake(s) :: else fi;
  if :: !linked -> join() :: else fi;
  do
  :: !OPEN(s) && round < 10 -> round++; tick(); renew(1, s); renew(2, s); open(s)
  :: else -> break
  od;
  assert(OPEN(s));
  renew(1, s); renew(2, s);
  ask(ASSIGN, 1, s);
  if :: !holds[1] -> ask(CLAIM, 1, s) :: else fi;
  if :: !holds[2] -> ask(CLAIM, 2, s) :: else fi;
  assert(SERVES(1) != SERVES(2))
}

proctype WayBack() {
  byte s, round;
  do
  :: d_step { SUPPOSE; heal(s); AND_BACK; s = 0; round = 0 }
  od
}

init {
  d_step {
    /* Open, on history 1 of server 0; broker 1 serves, and none of that has reached Kafka. */
    history[0] = 1; history[1] = (KEEPS_ITS_NAME -> 2 : 0);
    up[0] = true; up[1] = true; master[0] = true; linked = true; acked[0] = LAG;
    generation = 1; opened_on = 1;
    store[0].generation = 1; store[0].opened = 1; store[0].replicas = true;
    store[0].record = RECORD(1, 1, OWNED, 1, NOBODY); highest = EPOCH(store[0].record);
    store[0].marked = true;
    store[0].lease[1] = LEASE; until[1] = LEASE; on[1] = 1; holds[1] = true; seen[1] = store[0].record;
    copy(0, 1)
  };
  atomic { run Broker(1); run Broker(2); run Job(); run Servers(); run Clock(); WAY_BACK }
}
