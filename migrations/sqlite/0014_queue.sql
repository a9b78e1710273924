-- Refusals that are taken back, and the latest customers.

-- When a stylist took the customer's refusal back: the article is suggested again. The event still counts.
alter table feedback_events add column withdrawn_at integer;
-- The latest customers, for those who have no saved outfit yet.
create index customers_by_age on customers (created_at, id);
