-- What was suggested, so that feedback can be held against it; and how often tables changed.

create table completions (
    -- Given to the caller, who sends it back with feedback.
    id text not null,
    -- What made the suggestions, and the experiment's arm if one was running: feedback inherits these, so a
    -- caller cannot credit another method by a slip.
    release text not null,
    method text not null,
    arm text,
    -- Whom it was for, if somebody known; forgotten when they are erased.
    customer_id text,
    -- A JSON array of article ids, null for a blank: with the accepted articles in the blanks it becomes an
    -- outfit to learn from.
    outfit text not null,
    -- A JSON array of [slot, rank, article id]. It is read whole, by its completion alone, so it is no table.
    suggestions text not null,
    at integer not null,
    constraint completions_id_unique primary key (id),
    constraint completions_customer_known foreign key (customer_id) references customers (id) on delete set null
) strict;

-- Completions are kept for some days: a sweep finds the old ones.
create index completions_by_time on completions (at);
-- Erasing a customer, or exporting what is stored about them, must find theirs.
create index completions_by_customer on completions (customer_id) where customer_id is not null;

-- A number a table that grows with every change of it. Whoever keeps a copy in memory, in this process or
-- another one, compares the number instead of reading the table.
create table revisions (
    name text not null,
    value integer not null,
    constraint revisions_name_unique primary key (name)
) strict;

insert into revisions (name, value) values ('articles', 0);
