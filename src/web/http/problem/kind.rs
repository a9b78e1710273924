//! Every kind of problem, in the one table that gives them their codes, statuses and words.
//!
//! A new kind is one row here; `/docs/problems`, `/openapi.json` and the tests follow from it. Whoever meets
//! the problem makes one with `Problem::new(Kind::…, "what was found, what was expected, what to do")`.

/// `Name = status "code", "title": "what it means and what the caller can do";`
macro_rules! kinds {
    ($($name:ident = $status:literal $code:literal, $title:literal: $meaning:literal;)+) => {
        /// What is told of a problem. One row of the page that explains them all.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $title] $name,)+
        }

        /// Every kind, in the order of the page.
        pub const KINDS: &[Kind] = &[$(Kind::$name,)+];

        impl Kind {
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status,)+ }
            }

            /// What programs tell kinds apart by; it never changes.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// What it means and what the caller can do.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }
        }
    };
}

kinds! {
    Malformed = 400 "malformed", "The request cannot be read":
        "The body is not JSON, or the path is not text. The detail says where reading stopped.";
    SignIn = 401 "sign-in", "Sign in first":
        "This page is for people who are signed in, and the sign-in may have run out. Sign in and try again.";
    Key = 401 "key", "This takes an API key":
        "None was sent, or one that is none of this service's, has expired or was revoked. Send it as \
         Authorization: Bearer or as X-API-Key; an admin makes them.";
    Forbidden = 403 "forbidden", "This is not yours to do":
        "The role does not reach that far, or the form came from elsewhere or from an earlier sign-in. The detail \
         says which; an admin can give another role.";
    Scope = 403 "scope", "The API key does not reach that far":
        "A key opens what its scopes name. The detail says which scope this takes and which the key has; an admin \
         can make another key.";
    NotFound = 404 "not-found", "There is nothing here":
        "No page or resource has this path. Check the path and the ids in it.";
    MethodNotAllowed = 405 "method-not-allowed", "This path does not take this method":
        "The path exists, the HTTP method does not fit it. The Allow header names those that do.";
    Conflict = 409 "conflict", "This contradicts what is there":
        "The request makes sense by itself, but not with what is stored. The detail says with what.";
    Refused = 409 "release-refused", "This release cannot be served":
        "A file of it is missing, damaged or does not keep the contract; the detail names it, with what was \
         found and what was expected. What was served before goes on being served.";
    TooLarge = 413 "too-large", "The request is too large":
        "The body is longer than this path takes. The detail names the limit, /docs lists them all: split the \
         request, or ask whoever runs the service to raise the limit.";
    UnsupportedMediaType = 415 "unsupported-media-type", "This path takes another media type":
        "The Content-Type header is missing or names another format. The detail names the one that is taken.";
    Invalid = 422 "invalid", "The request makes no sense":
        "It can be read, but something in it has the wrong type, is out of range or is not known. Each of \
         errors names the place and what is the matter there.";
    QueueFull = 429 "queue-full", "Too much waits already":
        "More outfits wait for this method than the service takes on. Try again after the time in Retry-After, \
         with fewer at once.";
    TooFast = 429 "too-fast", "This API key asks too fast":
        "More requests came with this key than it may send in a second; /docs names the limit. Try again after the \
         time in Retry-After, or send what belongs together as one batch.";
    TooManyAttempts = 429 "too-many-attempts", "Too many attempts to sign in":
        "The password for this name was wrong too often. Try again after the time in Retry-After; each further          attempt waits longer.";
    Internal = 500 "internal", "Something went wrong inside":
        "A mistake in the service or a damaged record. The log names it under the request's id; please report \
         it with that.";
    Unavailable = 503 "unavailable", "The service cannot answer right now":
        "Something that the service needs, such as its database, cannot be reached. Try again after the time \
         in Retry-After; the log names the cause under the request's id.";
    NoRelease = 503 "no-release", "There is no model to answer":
        "No release is being served, so the catalogue can be read but nothing completed. Whoever runs the \
         service activates one.";
    Deadline = 504 "deadline", "It took too long":
        "There was no answer within the deadline that /docs names, because too much else was being done. Try \
         again later, or ask for less at once.";
}
