/* A record, and how one request changes it: the same in all models. */

#include "table.pml"

#define NOBODY 0   /* brokers are 1, 2, 3; NOBODY never holds a lease */
#define THE_JOB 0  /* as the asker */

/* A record as one number, starting with its epoch: the later of two records has the larger epoch.
   A bundle without a record is free: 0. */
#define RECORD(generation, counter, state, owner, destination) \
  (((((generation) * 16 + (counter)) * 8 + (state)) * 4 + (owner)) * 4 + (destination))
#define GENERATION(record) ((record) / 2048)
#define COUNTER(record) ((record) / 128 % 16)
#define EPOCH(record) ((record) / 128)
#define STATE(record) ((record) / 16 % 8)
#define OWNER(record) ((record) / 4 % 4)
#define DESTINATION(record) ((record) % 4)

#define SERVING(state) \
  (state == OWNED || state == RELEASING || state == SPLITTING || state == MERGING)

/* Values for one step only; they are not part of a model's state. */
hidden short made;
hidden byte owner, heir, aim, gone, accepted;

/* judge() of sinks/redis/lua/transition/judging.lua: sets `accepted`, and `made`, the changed record.
   asker: a broker or THE_JOB; other: the broker that the request names; open_to: the open generation;
   sure: the asker's clock agrees with the server's. A model defines LEASED(b), and COUNTED: by how
   much a change raises the counter.
   A request carries the epoch that it expects, and changes nothing if the record has another epoch.
   So it is enough to model requests that find the record as their asker saw it. */
inline judge(was, event, asker, other, open_to, sure) {
  consult(STATE(was), event);
  accepted = becomes != NO_ROW && GENERATION(was) <= open_to;
  owner = OWNER(was); heir = NOBODY; aim = NOBODY;
  if
  :: accepted ->
     gone = !LEASED(owner);
     if
     :: named == OWNER_IS_KEEP -> heir = owner
     :: named == OWNER_IS_KEEP_AIM -> heir = owner; aim = other
     :: named == OWNER_IS_TAKE -> heir = other
     :: named == OWNER_IS_DESTINATION -> heir = DESTINATION(was)
     :: named == OWNER_IS_NOBODY -> skip
     fi;
     /* Which asker may ask for which event. */
     if
     :: asker == THE_JOB -> accepted = THE_JOB_MAY_ASK(event)
     :: else -> accepted = A_BROKER_MAY_ASK(event) &&
          (event == ASSIGN || (event == CLAIM && heir == asker) ||
           (event != CLAIM && owner == asker))
     fi;
     /* Nothing is taken from a living owner, nor by an asker that is not sure of the server's clock. */
     if
     :: given == GIVEN_NOTHING || owner == NOBODY ||
        (given == GIVEN_OWNER_GONE_OR_JOB && asker == THE_JOB)
     :: else -> accepted = accepted && gone && sure
     fi;
     /* A broker without a lease gets nothing. */
     if
     :: named == OWNER_IS_TAKE || named == OWNER_IS_DESTINATION ->
          accepted = accepted && LEASED(heir)
     :: named == OWNER_IS_KEEP_AIM ->
          accepted = accepted && aim != owner && (aim == NOBODY || LEASED(aim))
     :: else
     fi
  :: else
  fi;
  made = RECORD(open_to, COUNTER(was) + COUNTED, becomes, heir, aim)
}

/* A search for a counterexample of one kind skips the other kinds. */
#ifdef NO_ONE_EPOCH
#define ONE_EPOCH(given_out, highest_one) skip
#else
#define ONE_EPOCH(given_out, highest_one) assert(given_out > highest_one); highest_one = given_out
#endif
#ifdef NO_WAY_BACK
#define WAY_BACK skip
#else
#define WAY_BACK run WayBack()
#endif

/* Where a schedule would lead, without going there: `now` is SPIN's name for the state. Between
   the two the state may be changed freely, and an assertion fails as it does elsewhere. */
c_decl { \#include <string.h> }
c_code { static State before; }
#define SUPPOSE c_code { memcpy(&before, &now, sizeof(State)); }
#define AND_BACK c_code { memcpy(&now, &before, sizeof(State)); }
