-- What became of suggestions. One row is one thing that happened to one suggested article.

create table feedback_events (
    -- SHA-256 of the caller's idempotency key: reporting an event again changes nothing. Only its hash,
    -- because callers make such keys out of what is at hand, a customer's id among it, and events
    -- keep no trace of a person.
    key_hash blob not null,
    kind text not null,
    completion_id text not null,
    slot integer not null,
    article_id text not null,
    rank integer not null,
    -- What made the suggestion, written down here: releases come and go, the counts stay true.
    release text not null,
    method text not null,
    -- The experiment's arm, if one was running.
    arm text,
    -- Forgotten when the customer is erased; the event still counts.
    customer_id text,
    at integer not null,
    constraint feedback_events_key_unique primary key (key_hash),
    constraint feedback_events_customer_known
        foreign key (customer_id) references customers (id) on delete set null,
    constraint feedback_events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought'))
) strict;

-- All that happened to one completion.
create index feedback_events_by_completion on feedback_events (completion_id);
-- Acceptance per method is counted from this index alone, without reading the events.
create index feedback_events_by_method on feedback_events (release, method, arm, kind);
-- Erasing a customer must find their events; most rows of a shop without accounts name nobody.
create index feedback_events_by_customer on feedback_events (customer_id) where customer_id is not null;
