-- No question of the server needs these: the board has tables of its own, forgetting looks along the primary key of one
-- machine, and retention goes by partition. They were half of the cost of taking events in.
drop index events_by_session;
drop index events_by_time;
