-- Figures count what happened to a suggestion once, whatever the number of reports.

-- SHA-256 over completion, slot, article and kind, in the first event that says so. Null in repeats, and in events
-- of older versions, because SQL cannot compute it here.
alter table feedback_events add column fact blob;
-- 1 if an earlier event says the same. Events stay, because a suggestion may be accepted, rejected and accepted again;
-- only figures leave repeats out. A version without this column may still write while it is replaced: its events count.
alter table feedback_events add column repeated integer not null default 0;

update feedback_events set repeated = 1 where key_hash in (
    select key_hash from (
        select key_hash, row_number() over (
            partition by completion_id, slot, article_id, kind order by at, key_hash
        ) as place
        from feedback_events
    ) where place > 1
);

-- What was accepted, rejected or bought was shown. The key is that of the other event with one more byte, so no event's
-- key is the same.
insert into feedback_events
    (key_hash, kind, completion_id, slot, article_id, rank, release, method, arm, customer_id, at)
select cast(key_hash || x'00' as blob), 'shown', completion_id, slot, article_id, rank, release, method, arm,
    customer_id, at
from (
    select *, row_number() over (partition by completion_id, slot, article_id order by at, key_hash) as place
    from feedback_events as judged
    where not exists (
        select 1 from feedback_events as shown
        where shown.kind = 'shown' and shown.completion_id = judged.completion_id
            and shown.slot = judged.slot and shown.article_id = judged.article_id
    )
) where place = 1;

-- Two replicas that record the same purchase at the same time count it once.
create unique index feedback_events_fact_unique on feedback_events (fact);
drop index feedback_events_by_method;
-- Acceptance per method is counted from this index alone, without reading the events.
create index feedback_events_counted on feedback_events (release, method, arm, kind) where repeated = 0;
