//! Deliveries end to end, through the tools.

mod accounting;
mod answer;
mod bundling;
mod corpora;
mod fetches;
mod layout;
mod properties;
mod reference;
mod sample;
mod world;
