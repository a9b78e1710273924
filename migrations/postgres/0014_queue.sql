-- Refusals that are taken back, and the latest customers. migrations/sqlite/0014_queue.sql gives the reasons.

alter table feedback_events add column withdrawn_at bigint;
create index customers_by_age on customers (created_at, id);
