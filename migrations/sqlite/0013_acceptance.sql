-- Figures over months of feedback are read at once: reading half a million events takes a second.

-- What became of the suggestions of a day. Outcomes count for the day on which the suggestion was shown, whenever they come,
-- so nothing is accepted more often than shown. Nothing here is about a customer.
create table feedback_counts (
    id integer primary key,
    -- Days since 1970, in UTC.
    shown_day integer not null,
    release text not null,
    method text not null,
    -- Empty without an experiment.
    arm text not null,
    -- The type when the article was shown: a later change of the catalogue moves no figure. Empty if the catalogue lacked it.
    article_type text not null,
    -- 1 if the release was not trained with the article, 0 if it was. -1 for events of older versions, because the database
    -- does not know what a release was trained with.
    is_new integer not null,
    shown integer not null default 0,
    accepted integer not null default 0,
    rejected integer not null default 0,
    bought integer not null default 0,
    constraint feedback_counts_key_unique unique (shown_day, release, method, arm, article_type, is_new)
) strict;

-- In an event `shown`: the row that counts its suggestion. Null in events that a version without this column writes while it is
-- replaced: they count with the next event about the suggestion.
alter table feedback_events add column counts_id integer;
-- In events that count: the day on which the suggestion was shown. Null in repeats.
alter table feedback_events add column shown_day integer;

update feedback_events set shown_day = shown.at / 86400000 from feedback_events as shown
where feedback_events.repeated = 0 and shown.kind = 'shown' and shown.repeated = 0
    and shown.completion_id = feedback_events.completion_id
    and shown.slot = feedback_events.slot and shown.article_id = feedback_events.article_id;

insert into feedback_counts
    (shown_day, release, method, arm, article_type, is_new, shown, accepted, rejected, bought)
select shown_day, release, method, coalesce(arm, ''), coalesce(type, ''), -1,
    count(case when kind = 'shown' then 1 end), count(case when kind = 'accepted' then 1 end),
    count(case when kind = 'rejected' then 1 end), count(case when kind = 'bought' then 1 end)
from feedback_events left join articles on articles.id = article_id
where shown_day is not null
group by 1, 2, 3, 4, 5;

update feedback_events set counts_id = (
    select c.id from feedback_counts c
    where c.shown_day = feedback_events.shown_day and c.release = feedback_events.release
        and c.method = feedback_events.method and c.arm = coalesce(feedback_events.arm, '')
        and c.article_type = coalesce((select type from articles where id = feedback_events.article_id), '')
)
where kind = 'shown' and shown_day is not null;

-- Acceptance by a feature of the customers is counted from this index alone.
drop index feedback_events_by_customer;
create index feedback_events_by_customer on feedback_events (customer_id, shown_day, kind) where customer_id is not null;
-- Only the counts used it.
drop index feedback_events_counted;
