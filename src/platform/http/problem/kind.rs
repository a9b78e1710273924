//! The table of all kinds of problems, with their codes, statuses and texts.
//!
//! A new kind is one row here; `/docs/problems`, `/openapi.json` and the tests follow from it. Make a problem with
//! `Problem::new(Kind::…, "what was found, what was expected, what to do")`.

/// `Name = status "code", "title": "the meaning, and what the caller can do";`
macro_rules! kinds {
    ($($name:ident = $status:literal $code:literal, $title:literal: $meaning:literal;)+) => {
        /// A kind of problem; one row of the page that explains them all.
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

            /// Identifies the kind for programs; it never changes.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// The meaning, and what the caller can do.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }
        }
    };
}

kinds! {
    Malformed = 400 "malformed", "Malformed request":
        "The body is not valid JSON, the path or the query is not valid UTF-8, or the Host is missing. The detail says which, and where \
         parsing stopped.";
    SignIn = 401 "sign-in", "Sign-in required":
        "This page is for signed-in users, and your session may have expired. Sign in and try again.";
    Key = 401 "key", "API key required":
        "No API key was sent, or the key is unknown, has expired or was revoked. Send it as Authorization: Bearer or \
         as X-API-Key; an admin creates keys.";
    Forbidden = 403 "forbidden", "You don't have permission":
        "Your role does not allow this, or the form came from another site or an earlier session. The detail says \
         which; an admin can change your role.";
    Scope = 403 "scope", "The API key lacks the scope":
        "A key allows only what its scopes name. The detail names the required scope and the key's scopes; an admin \
         can create another key.";
    DemoFull = 403 "demo-full", "The demo is full":
        "The demo has room to try things out, not for a shop's data. Start the service with a database of your own: \
         the detail has the command.";
    NotFound = 404 "not-found", "Not found":
        "No page or resource has this path. Check the path and the ids in it.";
    MethodNotAllowed = 405 "method-not-allowed", "Method not allowed":
        "The path exists but does not support this HTTP method. The Allow header lists the supported ones.";
    TooSlow = 408 "too-slow", "Request too slow":
        "The body did not arrive in time. The detail gives the limit; send the request again, or ask the operator to \
         raise it.";
    Conflict = 409 "conflict", "Conflict":
        "The request is valid, but it conflicts with stored data. The detail says with which.";
    Refused = 409 "release-refused", "This release cannot be served":
        "A file of the release is missing, damaged or breaks the contract. The detail names the file, what was found \
         and what was expected. The live release keeps serving.";
    Expired = 410 "completion-expired", "Completion id expired":
        "The completion is too old for feedback. The detail says how long feedback is accepted; the operator sets it.";
    PreconditionFailed = 412 "precondition-failed", "Changed in the meantime":
        "If-Match or If-None-Match names another version than the current one, so nothing was changed. GET it, decide \
         again, and send the new ETag.";
    TooLarge = 413 "too-large", "Request too large":
        "The body is longer than this path allows. The detail gives the limit, and /docs lists all limits. Split the \
         request, or ask the operator to raise the limit.";
    UnsupportedMediaType = 415 "unsupported-media-type", "Unsupported media type":
        "The Content-Type header is missing or names another format. The detail names the expected one.";
    UnsupportedEncoding = 415 "unsupported-encoding", "Unsupported content encoding":
        "The Content-Encoding header names a compression that the service does not read. Accept-Encoding of the answer \
         names those that it reads; a body without compression is always read.";
    Invalid = 422 "invalid", "Invalid request":
        "The request can be parsed, but a value has the wrong type, is out of range or is unknown. Each item of \
         errors gives the place and the reason.";
    QueueFull = 429 "queue-full", "Queue full":
        "Too many requests are waiting for this method. Try again after the time in Retry-After, with fewer at once.";
    TooFast = 429 "too-fast", "Rate limit exceeded":
        "This key sent more requests in a second than /docs allows. Try again after the time in Retry-After, or \
         combine requests in one batch.";
    TooManyStreams = 429 "too-many-streams", "Too many streams":
        "As many imports and exports are running as /docs allows. Try again after the time in Retry-After, or combine \
         them in one stream.";
    TooManyAttempts = 429 "too-many-attempts", "Too many sign-in attempts":
        "The password for this name was wrong too often. Try again after the time in Retry-After; each further \
         attempt waits longer.";
    SignInsFull = 429 "sign-ins-full", "Too many sign-ins at once":
        "Passwords are checked two at a time, and the queue is full. Try again after the time in Retry-After.";
    Internal = 500 "internal", "Internal error":
        "A bug in the service or a damaged record. The log has the cause under the request's id; please report it \
         with that id.";
    Unavailable = 503 "unavailable", "Service unavailable":
        "The service cannot reach something that it needs, such as its database. Try again after the time in \
         Retry-After; the log has the cause under the request's id.";
    NoRelease = 503 "no-release", "No release is live":
        "The catalogue can be read, but no outfit can be completed. The operator must activate a release.";
    Stopping = 503 "stopping", "The service is stopping":
        "Only /readyz says this, while the service still answers other requests. A load balancer must send new requests to \
         another replica.";
    Deadline = 504 "deadline", "Deadline exceeded":
        "There was no answer within the deadline that /docs lists, because the service is busy. Try again later, or \
         ask for less at once.";
}
