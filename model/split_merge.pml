/* Split and merge: three bundles that share a ring, cut short at each step.

   The ring has two halves. LOW and HIGH have one each, WHOLE has both. Two brokers, the job, and one
   server, which forgets its last writes or everything. Between the store's step and the broker's, a
   broker is killed, or an answer is lost. Invariants:
     one owner    two brokers never serve bundles that overlap
     no overlap   standing records never have bundles that overlap
     one epoch    every epoch of a bundle is above all earlier ones of it
     a way back   from every state, the schedule heal() ends with the whole ring served

   Time is left out: see histories.pml and claims.pml. A broker is `alive` while it holds its lease.
   In the store the lease ends when the broker has stopped serving, or later; here at once, which is
   the worst. A rebuild happens when every broker that is alive has said what it saw: the others have
   lost their leases by then. It opens the store under a new generation. The server may forget again
   before the store is open.

   Cures, each switched off by a flag: NAMES_BY_ORDER, SERVE_WITHOUT_ANSWER,
   LET_OVERLAPS_STAND, SAME_GENERATION. */

#define COUNTED 1
#define LEASED(b) (alive[b])
#include "rules.pml"

#ifndef FAULTS
#define FAULTS 1       /* the server forgets */
#endif
#ifndef KILLS
#define KILLS 1        /* of brokers */
#endif
#ifndef CHANGES
#define CHANGES 4      /* of records, by one request each */
#endif

#define LOW 0
#define HIGH 1
#define WHOLE 2

/* The store, with what is on its disk, and the journal topic. */
bool open = true;
bool strange;          /* the index has a name that is no range, between WHOLE and HIGH */
short record[3], saved[3], journal[3];
byte generation = 1;
bool spent = true;     /* the store was open to this generation */
bool restored;         /* a rebuild is done, and the store may open */
bool invented;         /* a rebuild has made records of this generation */

/* The brokers. */
bool alive[3], said[3];
bool holds[6];         /* of broker b and bundle x: see AT */
short seen[6];
#define AT(b, x) (3 * (b) + (x) - 3)

byte faults, kills, changes;
short highest[3];      /* of the records written for each bundle */
bool supposing;        /* within heal(): no bounds */

#define STANDS(x) (record[x] != 0 && STATE(record[x]) != DELETED)
#define SERVES(b, x) (alive[b] && holds[AT(b, x)])
#define APART(a, b) (!(SERVES(a, WHOLE) && (SERVES(b, WHOLE) || SERVES(b, LOW) || SERVES(b, HIGH))) && \
  !(SERVES(a, LOW) && SERVES(b, LOW)) && !(SERVES(a, HIGH) && SERVES(b, HIGH)))
#define ONE_OWNER assert(APART(1, 2) && APART(2, 1))
#define NO_OVERLAP assert(!(STANDS(WHOLE) && (STANDS(LOW) || STANDS(HIGH))))
#define BOUNDED (changes < CHANGES || supposing)

/* Whether a bundle that does not stand would overlap one that does. The names in index order:
   LOW, WHOLE, the strange one, HIGH. */
#ifdef NAMES_BY_ORDER
#define OVERLAPS(x) ( \
  (x == LOW && STANDS(WHOLE)) || \
  (x == HIGH && STANDS(WHOLE) && !strange) || \
  (x == WHOLE && (STANDS(LOW) || (STANDS(HIGH) && !strange))))
#define STRANGE_NAMES_ENTER true
#else
#define OVERLAPS(x) ((x == WHOLE && (STANDS(LOW) || STANDS(HIGH))) || (x != WHOLE && STANDS(WHOLE)))
#define STRANGE_NAMES_ENTER false
#endif

#ifdef SAME_GENERATION
#define USED spent
#else
#define USED (spent || invented)
#endif

#ifdef LET_OVERLAPS_STAND
#define GIVES_WAY(x) false
#else
#define GIVES_WAY(x) true
#endif

/* A rebuild that is repeated may write the very same record again. */
#ifdef NO_ONE_EPOCH
#define IS_NEW(x, written) skip
#else
#define IS_NEW(x, written) \
  assert(EPOCH(written) > EPOCH(highest[x]) || written == highest[x]); highest[x] = written
#endif

inline put(x, written) { IS_NEW(x, written); record[x] = written }

/* One request for one record. */
inline ask(event, asker, other, x) {
  judge(record[x], event, asker, other, generation, true);
  accepted = accepted && open && BOUNDED && (STANDS(x) || !OVERLAPS(x));
  if :: accepted -> changes = changes + (supposing -> 0 : 1); put(x, made) :: else fi
}

hidden byte counter;
inline at_least(least) { if :: counter < (least) -> counter = (least) :: else fi }

/* The bundle gets the same owner, in place of what ends. */
inline bear(x, mother, above) {
  counter = COUNTER(record[x]); at_least(above);
  put(x, RECORD(generation, counter + 1, OWNED, mother, NOBODY))
}

/* RETIRE of WHOLE: its children take its place. */
inline divide(b) {
  accepted = open && BOUNDED && !STANDS(LOW) && !STANDS(HIGH) && STATE(record[WHOLE]) == SPLITTING;
  if
  :: accepted ->
     counter = COUNTER(record[WHOLE]);
     ask(RETIRE, b, NOBODY, WHOLE);
     if
     :: accepted -> bear(LOW, b, COUNTER(record[WHOLE]) - 1); bear(HIGH, b, COUNTER(record[WHOLE]) - 1)
     :: else
     fi
  :: else
  fi;
  NO_OVERLAP
}

/* RETIRE of LOW with its neighbour HIGH: WHOLE takes their place. */
inline unite(b) {
  accepted = open && BOUNDED && !STANDS(WHOLE) && OWNER(record[HIGH]) == b && OWNER(record[LOW]) == b &&
    STATE(record[LOW]) == MERGING && STATE(record[HIGH]) == MERGING;
  if
  :: accepted ->
     judge(record[LOW], RETIRE, b, NOBODY, generation, true);
     if :: accepted -> put(LOW, made) :: else fi;
     judge(record[HIGH], RETIRE, b, NOBODY, generation, true);
     if :: accepted -> put(HIGH, made) :: else fi;
     counter = COUNTER(record[HIGH]) - 1; at_least(COUNTER(record[LOW]) - 1);
     changes = changes + (supposing -> 0 : 1);
     bear(WHOLE, b, counter)
  :: else
  fi;
  NO_OVERLAP
}

/* The broker follows a record that it receives. */
inline follow(b, x, told) {
  if
  :: EPOCH(told) >= EPOCH(seen[AT(b, x)]) ->
     seen[AT(b, x)] = told;
     holds[AT(b, x)] = OWNER(told) == b && SERVING(STATE(told))
  :: else -> holds[AT(b, x)] = false
  fi
}

inline stop(b) {
  alive[b] = false; said[b] = false;
  holds[AT(b, LOW)] = false; holds[AT(b, HIGH)] = false; holds[AT(b, WHOLE)] = false
}

#ifdef SERVE_WITHOUT_ANSWER
#define DROP(b, x) skip
#else
#define DROP(b, x) holds[AT(b, x)] = false
#endif

inline claim(b, x) { ask(CLAIM, b, b, x); if :: accepted -> follow(b, x, made) :: else fi; ONE_OWNER; NO_OVERLAP }
inline take(b, x) { ask(ASSIGN, b, b, x); NO_OVERLAP }

#define MAY_CLAIM(b, x) (alive[b] && open && !holds[AT(b, x)])
#define MAY_TAKE(b, x) (alive[b] && open && OWNER(record[x]) != b)
#define MAY_DIVIDE(b) (alive[b] && open && holds[AT(b, WHOLE)] && STATE(record[WHOLE]) == SPLITTING)
#define MAY_UNITE(b) (alive[b] && open && holds[AT(b, LOW)] && STATE(record[LOW]) == MERGING)

#define ANSWER low = record[LOW]; high = record[HIGH]; whole = record[WHOLE]
#define NO_ANSWER low = 0; high = 0; whole = 0

inline hear(b) {
  follow(b, LOW, low); follow(b, HIGH, high); follow(b, WHOLE, whole);
  NO_ANSWER; ONE_OWNER
}

proctype Broker(byte b) {
  short low, high, whole;
  do
  :: d_step { !alive[b] -> alive[b] = true }
  :: d_step { alive[b] -> stop(b) }                                     /* its lease runs out */
  :: d_step { kills < KILLS -> kills++; stop(b);
       seen[AT(b, LOW)] = 0; seen[AT(b, HIGH)] = 0; seen[AT(b, WHOLE)] = 0 } /* killed, its disk lost */
  :: d_step { alive[b] && !open && !said[b] -> said[b] = true }
  :: d_step { MAY_CLAIM(b, LOW) -> claim(b, LOW) }
  :: d_step { MAY_CLAIM(b, HIGH) -> claim(b, HIGH) }
  :: d_step { MAY_CLAIM(b, WHOLE) -> claim(b, WHOLE) }
  :: d_step { MAY_TAKE(b, LOW) -> take(b, LOW) }
  :: d_step { MAY_TAKE(b, HIGH) -> take(b, HIGH) }
  :: d_step { MAY_TAKE(b, WHOLE) -> take(b, WHOLE) }
  :: d_step { MAY_DIVIDE(b) -> divide(b); ANSWER };                     /* the store has done it, */
     if
     :: d_step { alive[b] -> hear(b) }                                  /* it hears that */
     :: d_step { DROP(b, WHOLE); NO_ANSWER }                            /* or never does */
     fi
  :: d_step { MAY_UNITE(b) -> unite(b); ANSWER };
     if
     :: d_step { alive[b] -> hear(b) }
     :: d_step { DROP(b, LOW); DROP(b, HIGH); NO_ANSWER }
     fi
  :: d_step { STRANGE_NAMES_ENTER && !strange -> strange = true }
  od
}

inline merge() {
  accepted = OWNER(record[LOW]) == OWNER(record[HIGH]) && STATE(record[HIGH]) == OWNED;
  if
  :: accepted ->
     ask(MERGE, THE_JOB, NOBODY, LOW);
     if
     :: accepted -> judge(record[HIGH], MERGE, THE_JOB, NOBODY, generation, true); put(HIGH, made)
     :: else
     fi
  :: else
  fi
}

inline later(mine, theirs) { if :: EPOCH(theirs) > EPOCH(mine) -> mine = theirs :: else fi }

inline newest(x) {
  later(record[x], journal[x]);
  if :: said[1] -> later(record[x], seen[AT(1, x)]) :: else fi;
  if :: said[2] -> later(record[x], seen[AT(2, x)]) :: else fi
}

inline give_way(x) {
  if
  :: GIVES_WAY(x) -> invented = true;
     put(x, RECORD(generation, COUNTER(record[x]) + 1, DELETED, NOBODY, NOBODY))
  :: else
  fi
}

inline free(x) {
  counter = COUNTER(record[x]);
  if :: x != WHOLE -> at_least(COUNTER(record[WHOLE]))
     :: else -> at_least(COUNTER(record[LOW])); at_least(COUNTER(record[HIGH]))
  fi;
  invented = true;
  put(x, RECORD(generation, counter + 1, FREE, NOBODY, NOBODY))
}

#define OUTRANKS_WHOLE(x) (STANDS(x) && (EPOCH(record[x]) > EPOCH(record[WHOLE]) || \
  (x == HIGH && EPOCH(record[x]) == EPOCH(record[WHOLE]))))
#define KNOWN(x) (record[x] != 0 || record[WHOLE] != 0)

/* trimtab/store/rebuild.py: the highest epochs win; of bundles that overlap the one with the higher
   epoch stands; a range that no bundle covers becomes a free bundle. */
inline rebuild() {
  if :: USED -> generation++; spent = false; invented = false :: else fi;
  newest(LOW); newest(HIGH); newest(WHOLE);
  if
  :: STANDS(WHOLE) && (OUTRANKS_WHOLE(LOW) || OUTRANKS_WHOLE(HIGH)) -> give_way(WHOLE)
  :: else
  fi;
  if :: STANDS(WHOLE) && STANDS(LOW) -> give_way(LOW) :: else fi;
  if :: STANDS(WHOLE) && STANDS(HIGH) -> give_way(HIGH) :: else fi;
  if
  :: STANDS(WHOLE)
  :: !STANDS(WHOLE) && !STANDS(LOW) && !STANDS(HIGH) && record[LOW] == 0 && record[WHOLE] != 0 ->
     free(WHOLE)
  :: else ->
     if :: KNOWN(LOW) && !STANDS(LOW) -> free(LOW) :: else fi;
     if :: KNOWN(HIGH) && !STANDS(HIGH) -> free(HIGH) :: else fi
  fi;
  restored = true;
  NO_OVERLAP
}

inline open_store() { open = true; spent = true; restored = false; said[1] = false; said[2] = false }

#define ALL_HAVE_SAID ((said[1] || !alive[1]) && (said[2] || !alive[2]))

proctype Job() {
  do
  :: d_step { STATE(record[WHOLE]) == OWNED -> ask(SPLIT, THE_JOB, NOBODY, WHOLE) }
  :: d_step { STATE(record[LOW]) == OWNED && STANDS(HIGH) -> merge() }
  :: d_step { STATE(record[WHOLE]) == SPLITTING -> ask(KEEP, THE_JOB, NOBODY, WHOLE) }
  :: d_step { STATE(record[LOW]) == MERGING -> ask(KEEP, THE_JOB, NOBODY, LOW) }
  :: d_step { STATE(record[HIGH]) == MERGING -> ask(KEEP, THE_JOB, NOBODY, HIGH) }
  :: d_step { journal[LOW] != record[LOW] -> later(journal[LOW], record[LOW]) }
  :: d_step { journal[HIGH] != record[HIGH] -> later(journal[HIGH], record[HIGH]) }
  :: d_step { journal[WHOLE] != record[WHOLE] -> later(journal[WHOLE], record[WHOLE]) }
  :: d_step { !open && !restored && ALL_HAVE_SAID -> rebuild() }
  :: d_step { restored -> open_store() }
  od
}

inline load(low, high, whole) {
  open = false; restored = false; said[1] = false; said[2] = false;
  record[LOW] = low; record[HIGH] = high; record[WHOLE] = whole
}

proctype Server() {
  do
  :: d_step { saved[LOW] = record[LOW]; saved[HIGH] = record[HIGH]; saved[WHOLE] = record[WHOLE] }
  :: d_step { faults < FAULTS -> faults++; load(saved[LOW], saved[HIGH], saved[WHOLE]) }
  :: d_step { faults < FAULTS -> faults++; load(0, 0, 0) }
  od
}

/* Broker 2 is gone, broker 1 starts again; the job opens the store, and lookups ask for the bundles. */
inline heal() {
  supposing = true;
  stop(1); stop(2); alive[1] = true; said[1] = true;
  if :: !open && !restored -> rebuild() :: else fi;
  if :: restored -> open_store() :: else fi;
  if
  :: STANDS(LOW) || STANDS(HIGH) ->
     take(1, LOW); claim(1, LOW); take(1, HIGH); claim(1, HIGH);
     assert(SERVES(1, LOW) && SERVES(1, HIGH))
  :: else -> take(1, WHOLE); claim(1, WHOLE); assert(SERVES(1, WHOLE))
  fi
}

proctype WayBack() {
  do
  :: d_step { SUPPOSE; heal(); AND_BACK }
  od
}

init {
  d_step {
    /* Broker 1 serves WHOLE, and none of that has reached Kafka or the server's disk. */
    record[WHOLE] = RECORD(1, 1, OWNED, 1, NOBODY); highest[WHOLE] = record[WHOLE];
    alive[1] = true; holds[AT(1, WHOLE)] = true; seen[AT(1, WHOLE)] = record[WHOLE]
  };
  atomic { run Broker(1); run Broker(2); run Job(); run Server(); WAY_BACK }
}
