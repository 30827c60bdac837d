-- The hash chain (core/chain.py). An erased event loses its salt and keeps the hash of what it was in `leaf`.
alter table facts add column salt blob;
alter table facts add column leaf blob;
alter table facts add column link blob;
