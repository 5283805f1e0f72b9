/* Made by python -m model.table from TRANSITIONS in trimtab/ownership.py: do not edit.

   consult(state, event) looks up a row of the table. It sets what the record becomes, the broker it
   then names, and what else must hold; NO_ROW if the table has no such row. */

#define FREE 0
#define ASSIGNING 1
#define OWNED 2
#define RELEASING 3
#define SPLITTING 4
#define MERGING 5
#define DELETED 6
#define QUARANTINED 7
#define NO_ROW 255

#define ASSIGN 0
#define UNLOAD 1
#define TRANSFER 2
#define SPLIT 3
#define MERGE 4
#define LOSE 5
#define KEEP 6
#define QUARANTINE 7
#define READMIT 8
#define RESTORE 9
#define CLAIM 10
#define SERVE 11
#define RELEASE 12
#define HAND_OVER 13
#define DECLINE 14
#define RETIRE 15
#define EVENTS 16

#define OWNER_IS_KEEP 0
#define OWNER_IS_KEEP_AIM 1
#define OWNER_IS_TAKE 2
#define OWNER_IS_DESTINATION 3
#define OWNER_IS_NOBODY 4

#define GIVEN_NOTHING 0
#define GIVEN_OWNER_GONE 1
#define GIVEN_OWNER_GONE_OR_JOB 2

#define A_BROKER_MAY_ASK(event) (event == ASSIGN || event == CLAIM || event == SERVE || event == RELEASE || event == HAND_OVER || event == DECLINE || event == RETIRE)
#define THE_JOB_MAY_ASK(event) (event == ASSIGN || event == UNLOAD || event == TRANSFER || event == SPLIT || event == MERGE || event == LOSE || event == KEEP || event == QUARANTINE || event == READMIT || event == RESTORE)

hidden byte becomes, named, given;

inline consult(state, event) {
  if
  :: state == FREE && event == CLAIM -> becomes = OWNED; named = OWNER_IS_TAKE; given = GIVEN_NOTHING
  :: state == FREE && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_NOTHING
  :: state == FREE && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == ASSIGNING && event == CLAIM -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == ASSIGNING && event == SERVE -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == ASSIGNING && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_OWNER_GONE_OR_JOB
  :: state == ASSIGNING && event == DECLINE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == ASSIGNING && event == LOSE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE_OR_JOB
  :: state == ASSIGNING && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE_OR_JOB
  :: state == OWNED && event == CLAIM -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == OWNED && event == UNLOAD -> becomes = RELEASING; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == OWNED && event == TRANSFER -> becomes = RELEASING; named = OWNER_IS_KEEP_AIM; given = GIVEN_NOTHING
  :: state == OWNED && event == SPLIT -> becomes = SPLITTING; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == OWNED && event == MERGE -> becomes = MERGING; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == OWNED && event == RELEASE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == OWNED && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_OWNER_GONE
  :: state == OWNED && event == LOSE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == OWNED && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == RELEASING && event == CLAIM -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == RELEASING && event == RELEASE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == RELEASING && event == HAND_OVER -> becomes = ASSIGNING; named = OWNER_IS_DESTINATION; given = GIVEN_NOTHING
  :: state == RELEASING && event == DECLINE -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == RELEASING && event == KEEP -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == RELEASING && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_OWNER_GONE
  :: state == RELEASING && event == LOSE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == RELEASING && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == SPLITTING && event == CLAIM -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == SPLITTING && event == RETIRE -> becomes = DELETED; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == SPLITTING && event == DECLINE -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == SPLITTING && event == KEEP -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == SPLITTING && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_OWNER_GONE
  :: state == SPLITTING && event == LOSE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == SPLITTING && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == MERGING && event == CLAIM -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == MERGING && event == RETIRE -> becomes = DELETED; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == MERGING && event == DECLINE -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == MERGING && event == KEEP -> becomes = OWNED; named = OWNER_IS_KEEP; given = GIVEN_NOTHING
  :: state == MERGING && event == ASSIGN -> becomes = ASSIGNING; named = OWNER_IS_TAKE; given = GIVEN_OWNER_GONE
  :: state == MERGING && event == LOSE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == MERGING && event == QUARANTINE -> becomes = QUARANTINED; named = OWNER_IS_NOBODY; given = GIVEN_OWNER_GONE
  :: state == DELETED && event == RESTORE -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: state == QUARANTINED && event == READMIT -> becomes = FREE; named = OWNER_IS_NOBODY; given = GIVEN_NOTHING
  :: else -> becomes = NO_ROW
  fi
}
