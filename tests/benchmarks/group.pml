/* One group at its coordinator, the processes that want to be members, and their network: the world that
   model/explore/classic/group_model.py builds from the shipped handlers, written a second time by hand so that Spin can count its
   states. Dynamic members of one protocol and one partition; every step is one d_step, so that every state that Spin
   stores is a state of that world, and the other way round. What would lead beyond the bounds starts anew, which adds
   no state. 0 stands for no id, no generation and no request. */

#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef IDS
#define IDS 2
#endif
#ifndef GENERATIONS
#define GENERATIONS 2
#endif
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef COOPERATIVE
#define COOPERATIVE 1
#endif
#ifndef HEARTBEATS
#define HEARTBEATS 0
#endif
#if SLOTS > 3 || IDS > 3 || MEMBERS > 3
#error "the choices at the end of this model are written out for up to three slots, ids and members"
#endif

/* phases of the group */
#define EMPTY 0
#define PREPARING 1
#define COMPLETING 2
#define STABLE 3
/* what a slot holds */
#define NOBODY 0
#define PENDING 1
#define MEMBER 2
/* states of a process; it is STABLE as the group is */
#define UNJOINED 0
#define JOINING 1
#define SYNCING 2
/* requests, and the answers to them */
#define JOIN 1
#define SYNC 2
#define LEAVE 3
#define HEARTBEAT 4
#define COMMIT 5
#define ROUND 6  /* as the answer to a JOIN: the present round */
/* errors */
#define NONE 0
#define MEMBER_ID_REQUIRED 1
#define UNKNOWN_MEMBER_ID 2
#define ILLEGAL_GENERATION 3
#define REBALANCE_IN_PROGRESS 4
/* what becomes of the round after a step */
#define NOTHING 0
#define TRIGGER 1
#define TRY 2
#define CHECK 3
#define PREPARE 4
#define COMPLETE 5

typedef Slot {
  byte holder; byte id; bool is_new; byte join; byte sync; bool unsynced;
  bool claim;       /* its metadata: it owned the partition when it joined */
  byte assignment;  /* 0: none, 1: without the partition, 2: with it */
  bool armed
}
typedef Process {
  byte state; byte id; byte generation; byte waiting; byte last; bool rejoins = 1; bool owned; byte owned_in
}
typedef Request {
  byte kind; byte number; byte id; byte generation; bool claim;
  byte to[SLOTS]; bool gives[SLOTS]  /* the leader's assignments */
}
typedef Answer {
  byte kind; byte error; byte number; byte id; byte generation; byte leader; byte assignment;
  byte view[SLOTS]; bool claims[SLOTS]  /* the members, as the leader is told of them */
}
typedef Commit { byte id; byte generation }

/* what may differ between two states: the coordinator, */
byte phase, generation, leader, last_id;
bool typed, voted, leader_open, from_empty, newcomer, join_armed, initial, sync_armed;
Slot slot[SLOTS];
/* the processes and their registers */
Process process[MEMBERS];
Request request[MEMBERS];
Answer answer[MEMBERS];
Commit late[MEMBERS];

/* used within a step alone */
hidden byte i, j, at, to, course, first, kind, error, handle, whom, when, given;
hidden byte cut, some, led, interrupted, favoured, stays;

#define handle_of(p, number) ((number) * MEMBERS + (p) + 1)
#define process_of(handle) (((handle) - 1) % MEMBERS)
#define number_of(handle) ((handle) == 0 -> 0 : ((handle) - 1) / MEMBERS)

inline clear_answer(p) {
  answer[p].kind = 0; answer[p].error = 0; answer[p].number = 0; answer[p].id = 0;
  answer[p].generation = 0; answer[p].leader = 0; answer[p].assignment = 0;
  for (j : 0 .. SLOTS - 1) { answer[p].view[j] = 0; answer[p].claims[j] = 0 }
}

inline clear_request(p) {
  request[p].kind = 0; request[p].number = 0; request[p].id = 0; request[p].generation = 0; request[p].claim = 0;
  for (j : 0 .. SLOTS - 1) { request[p].to[j] = 0; request[p].gives[j] = 0 }
}

inline clear_slot(s) {
  slot[s].holder = NOBODY; slot[s].id = 0; slot[s].is_new = 0; slot[s].join = 0; slot[s].sync = 0;
  slot[s].unsynced = 0; slot[s].claim = 0; slot[s].assignment = 0; slot[s].armed = 0
}

inline restart(p) {
  process[p].state = UNJOINED; process[p].id = 0; process[p].generation = 0; process[p].waiting = 0;
  process[p].rejoins = 1; process[p].owned = 0; process[p].owned_in = 0
}

inline start_anew() {
  phase = EMPTY; generation = 0; leader = 0; last_id = 0; typed = 0; voted = 0; leader_open = 0; from_empty = 0;
  newcomer = 0; join_armed = 0; initial = 0; sync_armed = 0;
  for (i : 0 .. SLOTS - 1) { clear_slot(i) }
  for (i : 0 .. MEMBERS - 1) {
    restart(i); process[i].last = 0; clear_request(i); clear_answer(i); late[i].id = 0; late[i].generation = 0
  }
}

/* answers */

inline answer_join(h, what, who) {
  to = process_of(h);
  clear_answer(to);
  answer[to].kind = JOIN; answer[to].error = what; answer[to].number = number_of(h); answer[to].id = who
}

inline answer_round(h, s) {
  answer_join(h, NONE, slot[s].id);
  answer[to].generation = generation; answer[to].leader = leader;
  if
  :: slot[s].id == leader ->
     for (j : 0 .. SLOTS - 1) {
       if
       :: slot[j].holder == MEMBER -> answer[to].view[j] = slot[j].id; answer[to].claims[j] = slot[j].claim
       :: else
       fi
     }
  :: else
  fi
}

inline answer_sync(h, what, share) {
  to = process_of(h);
  clear_answer(to);
  answer[to].kind = SYNC; answer[to].error = what; answer[to].number = number_of(h); answer[to].assignment = share
}

/* the answer to the request that is served, if there is one by the end of the step */
inline reply(p) {
  if
  :: kind == ROUND -> answer_round(handle, at)
  :: kind != 0 && kind != ROUND ->
     clear_answer(p);
     answer[p].kind = kind; answer[p].error = error; answer[p].number = number_of(handle); answer[p].id = whom;
     answer[p].generation = when; answer[p].assignment = given
  :: else
  fi;
  kind = 0; error = NONE; handle = 0; whom = 0; when = 0; given = 0
}

/* the member table */

inline find(who, lowest) {
  at = SLOTS;
  for (i : 0 .. SLOTS - 1) {
    if
    :: slot[i].holder >= lowest && slot[i].id == who -> at = i
    :: else
    fi
  }
}

inline remove(s) {
  led = slot[s].holder == MEMBER && leader != 0 && leader == slot[s].id;
  clear_slot(s);
  some = 0;
  for (j : 0 .. SLOTS - 1) { some = some || slot[j].holder == MEMBER }
  leader = (led -> 0 : leader);
  leader_open = (leader_open || led) && some
}

inline depart(s) {
  if
  :: slot[s].join != 0 -> answer_join(slot[s].join, UNKNOWN_MEMBER_ID, 0)
  :: else
  fi;
  remove(s)
}

/* rounds */

inline prepare() {
  interrupted = phase == COMPLETING;
  for (i : 0 .. SLOTS - 1) {
    if
    :: interrupted && slot[i].holder == MEMBER && slot[i].sync != 0 ->
       answer_sync(slot[i].sync, REBALANCE_IN_PROGRESS, 0); slot[i].sync = 0; slot[i].armed = 1
    :: else
    fi;
    slot[i].unsynced = 0;
    slot[i].assignment = (interrupted -> 0 : slot[i].assignment)
  }
  from_empty = phase == EMPTY;
  phase = PREPARING; sync_armed = 0
}

inline look_who_joined() {
  stays = 1;
  for (i : 0 .. SLOTS - 1) {
    stays = stays && slot[i].holder != PENDING && (slot[i].holder != MEMBER || slot[i].join != 0)
  }
  course = (stays -> COMPLETE : NOTHING)
}

inline complete(favourite) {
  generation++; join_armed = 0; initial = 0;
  some = 0; first = 0; favoured = 0; stays = 0;
  for (i : 0 .. SLOTS - 1) {
    if
    :: slot[i].holder == MEMBER && slot[i].join == 0 -> clear_slot(i)
    :: slot[i].holder == MEMBER && slot[i].join != 0 ->
       first = (some -> first : slot[i].id); some = 1;
       favoured = favoured || slot[i].id == favourite; stays = stays || slot[i].id == leader
    :: else
    fi
  }
  if
  :: !some ->
     phase = EMPTY; voted = 0; leader = 0; leader_open = 0; from_empty = 0; sync_armed = 0
  :: else ->
     leader = (stays -> leader : (favoured -> favourite : first));
     leader_open = 0; voted = 1; phase = COMPLETING; sync_armed = 1;
     for (i : 0 .. SLOTS - 1) {
       if
       :: slot[i].holder == MEMBER -> answer_round(slot[i].join, i)
       :: else
       fi
     }
     for (i : 0 .. SLOTS - 1) {
       if
       :: slot[i].holder == MEMBER ->
          slot[i].join = 0; slot[i].is_new = 0; slot[i].unsynced = 1; slot[i].armed = 1
       :: else
       fi
     }
  fi
}

inline settle(favourite) {
  if
  :: course == TRIGGER -> course = (phase == PREPARING -> TRY : PREPARE)
  :: else
  fi;
  if
  :: course == TRY && phase == PREPARING && !from_empty -> look_who_joined()
  :: course == CHECK && phase == PREPARING -> look_who_joined()
  :: course == PREPARE ->
     prepare();
     if
     :: from_empty -> join_armed = 1; initial = 1
     :: else ->
        look_who_joined();
        if
        :: course != COMPLETE -> join_armed = 1; initial = 0
        :: else
        fi
     fi
  :: else
  fi;
  if
  :: course == COMPLETE && generation == GENERATIONS -> cut = 1
  :: course == COMPLETE && generation < GENERATIONS -> complete(favourite)
  :: else
  fi;
  if
  :: cut -> start_anew()
  :: else
  fi;
  cut = 0; course = NOTHING
}

inline settle_sync_timer() {
  some = 0;
  for (j : 0 .. SLOTS - 1) { some = some || (slot[j].holder == MEMBER && slot[j].unsynced) }
  sync_armed = sync_armed && some
}

/* the coordinator serves */

inline serve_join(p) {
  handle = handle_of(p, request[p].number);
  if
  :: request[p].id == 0 ->
     at = SLOTS;
     for (i : 0 .. SLOTS - 1) { at = (at == SLOTS && slot[i].holder == NOBODY -> i : at) }
     if
     :: at == SLOTS || last_id == IDS -> cut = 1
     :: else ->
        last_id++;
        slot[at].holder = PENDING; slot[at].id = last_id; slot[at].armed = 1;
        kind = JOIN; error = MEMBER_ID_REQUIRED; whom = last_id
     fi
  :: else ->
     find(request[p].id, PENDING);
     if
     :: at == SLOTS -> kind = JOIN; error = UNKNOWN_MEMBER_ID; whom = request[p].id
     :: at < SLOTS && slot[at].holder == PENDING ->
        slot[at].holder = MEMBER; slot[at].is_new = 1; slot[at].join = handle; slot[at].claim = request[p].claim;
        newcomer = newcomer || (phase == PREPARING && from_empty);
        typed = 1;
        leader = (leader == 0 && !leader_open -> slot[at].id : leader);
        course = TRIGGER
     :: (at < SLOTS && slot[at].holder == MEMBER && (phase == PREPARING || slot[at].claim != request[p].claim
                                                     || (phase == STABLE && slot[at].id == leader))) ->
        slot[at].claim = request[p].claim; slot[at].join = handle;
        course = TRIGGER
     :: else -> kind = ROUND
     fi
  fi
}

inline serve_sync(p) {
  handle = handle_of(p, request[p].number);
  find(request[p].id, MEMBER);
  kind = SYNC;
  if
  :: at == SLOTS -> error = UNKNOWN_MEMBER_ID
  :: at < SLOTS && request[p].generation != generation -> error = ILLEGAL_GENERATION
  :: at < SLOTS && request[p].generation == generation && phase == PREPARING -> error = REBALANCE_IN_PROGRESS
  :: at < SLOTS && request[p].generation == generation && phase == STABLE ->
     slot[at].unsynced = 0; given = slot[at].assignment;
     settle_sync_timer()
  :: else ->
     slot[at].sync = handle; slot[at].unsynced = 0; kind = 0;
     if
     :: slot[at].id == leader ->
        for (i : 0 .. SLOTS - 1) {
          if
          :: slot[i].holder == MEMBER ->
             slot[i].assignment = 0;
             for (j : 0 .. SLOTS - 1) {
               if
               :: request[p].to[j] == slot[i].id -> slot[i].assignment = 1 + request[p].gives[j]
               :: else
               fi
             }
             if
             :: slot[i].sync != 0 ->
                answer_sync(slot[i].sync, NONE, slot[i].assignment); slot[i].sync = 0; slot[i].armed = 1
             :: else
             fi
          :: else
          fi
        }
        some = 0;
        for (i : 0 .. SLOTS - 1) {
          assert(!(some && slot[i].assignment == 2));
          some = some || slot[i].assignment == 2
        }
        phase = STABLE; from_empty = 0
     :: else
     fi;
     settle_sync_timer()
  fi
}

inline serve_heartbeat(p) {
  find(request[p].id, MEMBER);
  kind = HEARTBEAT; whom = request[p].id; when = request[p].generation;
  if
  :: at == SLOTS -> error = UNKNOWN_MEMBER_ID
  :: at < SLOTS && when != generation -> error = ILLEGAL_GENERATION
  :: else ->
     slot[at].armed = 1;
     error = (phase == PREPARING -> REBALANCE_IN_PROGRESS : NONE);
     kind = (phase == PREPARING -> HEARTBEAT : 0)
  fi
}

inline serve_leave(p) {
  find(request[p].id, PENDING);
  if
  :: at < SLOTS -> depart(at); course = (phase == EMPTY -> NOTHING : TRIGGER)
  :: else
  fi
}

inline serve(p, favourite) {
  if
  :: request[p].kind == JOIN -> serve_join(p)
  :: request[p].kind == SYNC -> serve_sync(p)
  :: request[p].kind == LEAVE -> serve_leave(p)
  :: request[p].kind == HEARTBEAT -> serve_heartbeat(p)
  fi;
  reply(p);
  settle(favourite)
}

inline serve_commit(p) {
  find(late[p].id, MEMBER);
  kind = COMMIT; whom = late[p].id; when = late[p].generation;
  if
  :: at == SLOTS -> error = UNKNOWN_MEMBER_ID
  :: at < SLOTS && when != generation -> error = ILLEGAL_GENERATION
  :: at < SLOTS && when == generation && phase == COMPLETING -> error = REBALANCE_IN_PROGRESS
  :: else ->
     slot[at].armed = 1; kind = 0;
     for (i : 0 .. SLOTS - 1) { assert(i == at || slot[i].assignment != 2) }
  fi;
  reply(p)
}

inline expire(s, favourite) {
  if
  :: slot[s].holder == PENDING -> remove(s); course = CHECK
  :: slot[s].holder == MEMBER && !slot[s].is_new && (slot[s].join != 0 || slot[s].sync != 0) -> slot[s].armed = 0
  :: else -> depart(s); course = (phase == PREPARING -> CHECK : TRIGGER)
  fi;
  settle(favourite)
}

inline expire_sync() {
  sync_armed = 0;
  for (i : 0 .. SLOTS - 1) {
    if
    :: slot[i].holder == MEMBER && slot[i].unsynced -> remove(i); course = PREPARE
    :: else
    fi
  }
  settle(1)  /* nobody has joined yet, so nobody is elected */
}

/* the processes act and hear */

inline outdated(p) { process[p].state = UNJOINED; process[p].generation = 0; process[p].rejoins = 1 }

inline thrown_out(p) { outdated(p); process[p].id = 0 }

inline joins(p) {
  process[p].last++;
  process[p].state = JOINING; process[p].waiting = process[p].last; process[p].rejoins = 1;
  process[p].owned = COOPERATIVE && process[p].owned && process[p].generation != 0;
  clear_request(p);
  request[p].kind = JOIN; request[p].number = process[p].last; request[p].id = process[p].id;
  request[p].claim = process[p].owned
}

inline leaves(p) {
  if
  :: process[p].state != UNJOINED && process[p].id != 0 ->
     clear_request(p); request[p].kind = LEAVE; request[p].id = process[p].id
  :: else
  fi;
  thrown_out(p)
}

inline heartbeats(p) {
  clear_request(p);
  request[p].kind = HEARTBEAT; request[p].id = process[p].id; request[p].generation = process[p].generation
}

inline commits(p) { late[p].id = process[p].id; late[p].generation = process[p].generation }

/* the answer grants a round, and the process still waits for it */
#define granted(p) (answer[p].kind == JOIN && answer[p].error == NONE \
                    && answer[p].number == process[p].waiting && process[p].state == JOINING)

inline follows(p, plan) {
  process[p].last++;
  process[p].state = SYNCING; process[p].waiting = process[p].last;
  process[p].id = answer[p].id; process[p].generation = answer[p].generation;
  clear_request(p);
  request[p].kind = SYNC; request[p].number = process[p].last;
  request[p].id = answer[p].id; request[p].generation = answer[p].generation;
  for (i : 0 .. SLOTS - 1) {
    request[p].to[i] = answer[p].view[i];
    some = 0;
    for (j : 0 .. SLOTS - 1) { some = some || (answer[p].claims[j] && answer[p].view[j] != answer[p].view[i]) }
    request[p].gives[i] = plan != 0 && answer[p].view[i] == plan && !some
  }
  clear_answer(p)
}

inline hears_sync(p) {
  process[p].waiting = 0;
  if
  :: process[p].state == SYNCING && answer[p].error == NONE ->
     some = process[p].owned && answer[p].assignment != 2;
     process[p].owned = answer[p].assignment == 2; process[p].owned_in = process[p].generation;
     process[p].state = STABLE; process[p].rejoins = some;
     if
     :: some -> commits(p)
     :: else
     fi;
     for (i : 0 .. MEMBERS - 1) {
       assert(i == p || !process[p].owned || !process[i].owned || process[i].generation == 0
              || process[i].owned_in != process[p].owned_in)
     }
  :: process[p].state == SYNCING && answer[p].error == ILLEGAL_GENERATION -> outdated(p)
  :: process[p].state == SYNCING && answer[p].error == UNKNOWN_MEMBER_ID -> thrown_out(p)
  :: else
  fi
}

inline hears_refusal(p) {
  if
  :: answer[p].error == REBALANCE_IN_PROGRESS && (answer[p].kind == COMMIT || process[p].state == STABLE) ->
     process[p].rejoins = 1
  :: (answer[p].error != REBALANCE_IN_PROGRESS
      && answer[p].id == process[p].id && answer[p].generation == process[p].generation) ->
     if
     :: answer[p].error == ILLEGAL_GENERATION -> outdated(p)
     :: answer[p].error == UNKNOWN_MEMBER_ID -> thrown_out(p)
     fi
  :: else
  fi
}

inline hears(p) {
  if
  :: answer[p].kind == JOIN && answer[p].number == process[p].waiting ->
     process[p].waiting = 0;
     if
     :: process[p].state == JOINING && answer[p].error == MEMBER_ID_REQUIRED ->
        process[p].id = answer[p].id; process[p].generation = 0
     :: process[p].state == JOINING && answer[p].error == UNKNOWN_MEMBER_ID -> thrown_out(p)
     :: else
     fi
  :: answer[p].kind == SYNC && answer[p].number == process[p].waiting -> hears_sync(p)
  :: answer[p].kind == HEARTBEAT || answer[p].kind == COMMIT -> hears_refusal(p)
  :: else
  fi;
  clear_answer(p)
}

/* everything that can happen; who is favoured to lead is tried among the ids given out, where it may matter */

#define opens(p, favourite) (favourite == 1 || (favourite <= last_id \
  && ((request[p].kind == JOIN && leader_open) \
      || (request[p].kind == LEAVE && (leader_open || leader == request[p].id)))))
#define served(p, favourite) \
  :: d_step { request[p].kind != 0 && opens(p, favourite) -> serve(p, favourite); skip } \
  :: d_step { request[p].kind != 0 && opens(p, favourite) -> serve(p, favourite); clear_request(p); skip }
#define timed(favourite) \
  :: d_step { phase == PREPARING && join_armed && (favourite == 1 || favourite <= last_id) -> \
              course = COMPLETE; settle(favourite); skip }
#define expiring(s, favourite) \
  :: d_step { slot[s].armed && (favourite == 1 || (favourite <= last_id && (leader_open || leader == slot[s].id))) -> \
              expire(s, favourite); skip }
#define planned(p, plan) \
  :: d_step { granted(p) && process[p].last < REQUESTS && leads_one(p, plan) -> follows(p, plan); skip }
#if SLOTS == 1
#define leads_one(p, plan) (plan == 0 || answer[p].view[0] == plan)
#elif SLOTS == 2
#define leads_one(p, plan) (plan == 0 || answer[p].view[0] == plan || answer[p].view[1] == plan)
#else
#define leads_one(p, plan) (plan == 0 || answer[p].view[0] == plan || answer[p].view[1] == plan \
                            || answer[p].view[2] == plan)
#endif
#if IDS == 1
#define each_plan(p) planned(p, 0) planned(p, 1)
#define each_served(p) served(p, 1)
#define each_timed timed(1)
#define each_expiring(s) expiring(s, 1)
#elif IDS == 2
#define each_plan(p) planned(p, 0) planned(p, 1) planned(p, 2)
#define each_served(p) served(p, 1) served(p, 2)
#define each_timed timed(1) timed(2)
#define each_expiring(s) expiring(s, 1) expiring(s, 2)
#else
#define each_plan(p) planned(p, 0) planned(p, 1) planned(p, 2) planned(p, 3)
#define each_served(p) served(p, 1) served(p, 2) served(p, 3)
#define each_timed timed(1) timed(2) timed(3)
#define each_expiring(s) expiring(s, 1) expiring(s, 2) expiring(s, 3)
#endif
#define is_nobody(p) (process[p].state == UNJOINED && process[p].id == 0 && process[p].generation == 0 \
                      && process[p].rejoins)
#define is_new_process(p) (is_nobody(p) && process[p].waiting == 0 && !process[p].owned && process[p].owned_in == 0)
#define each(p) \
  :: d_step { process[p].last < REQUESTS -> joins(p); skip } \
  :: d_step { !is_new_process(p) -> restart(p); skip } \
  :: d_step { !is_nobody(p) -> leaves(p); skip } \
  :: d_step { process[p].state == STABLE && process[p].owned -> commits(p); skip } \
  :: d_step { HEARTBEATS && (process[p].state == SYNCING || process[p].state == STABLE) -> heartbeats(p); skip } \
  :: d_step { answer[p].kind != 0 -> clear_answer(p); skip } \
  :: d_step { answer[p].kind != 0 && !granted(p) -> hears(p); skip } \
  each_plan(p) \
  each_served(p) \
  :: d_step { late[p].id != 0 -> serve_commit(p); skip } \
  :: d_step { late[p].id != 0 -> serve_commit(p); late[p].id = 0; late[p].generation = 0; skip }

active proctype world() {
end_of_bounds:  /* where every request was used and nobody is left, nothing more can happen */
  do
  each(0)
#if MEMBERS > 1
  each(1)
#endif
#if MEMBERS > 2
  each(2)
#endif
  each_expiring(0)
#if SLOTS > 1
  each_expiring(1)
#endif
#if SLOTS > 2
  each_expiring(2)
#endif
  each_timed
  :: d_step { sync_armed -> expire_sync(); skip }
  od
}
