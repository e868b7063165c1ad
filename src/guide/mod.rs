//! Guides: short programs for the common tasks of a store. The tests compile and run each of them.
//!
//! | task | guide |
//! |---|---|
//! | take nothing twice, in an application | [`first_store`] |
//! | find pairs and clusters of a corpus, offline | [`bulk`] |
//! | share one store between the threads of a crawler | [`crawler`] |
//! | write from many threads, or from asynchronous code | [`group_commit`] |
//! | renew, replace and evict documents over years | [`life_cycle`] |
//! | bound the cost of templates and error pages | [`hot_buckets`] |
//! | choose among the kinds of signatures | [`kinds`] |
//! | find nearly identical documents, by Hamming distance | [`simhash`] |
//! | find the nearest documents, however far they are | [`nearest`] |
//! | bring signatures that were made elsewhere | [`external`] |
//! | make the signature of a union | [`unions`] |
//! | cut texts into features, read long ones, weigh rare words | [`texts`] |
//! | replace estimates by exact similarities | [`exact`] |
//! | choose another threshold later | [`reband`] |
//! | copy a store, move documents, read the documents of a damaged one | [`copies`] |
//! | watch a store at work | [`metrics`] |

pub mod bulk;
pub mod copies;
pub mod crawler;
pub mod exact;
pub mod external;
pub mod first_store;
pub mod group_commit;
pub mod hot_buckets;
pub mod kinds;
pub mod life_cycle;
pub mod metrics;
pub mod nearest;
pub mod reband;
pub mod simhash;
pub mod texts;
pub mod unions;
