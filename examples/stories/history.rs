//! A copy of the clusters of a store, made of their changes alone.

use std::collections::BTreeMap;

use resemblance::{ClusterChange, ClusterEvent, ClusterId, DocumentId};

pub(crate) struct Article {
    pub(crate) day: u64,
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// A story, which may have become a part of another one.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) articles: Vec<DocumentId>,
    /// The articles that came to it first, and the days.
    pub(crate) joined: Vec<(u64, DocumentId)>,
    /// The story from which it was split, and the day.
    pub(crate) split_from: Option<(u64, ClusterId)>,
    /// The story with which it was united, and the day.
    pub(crate) united: Option<(u64, ClusterId)>,
    /// The articles that left it for no other story, and the days.
    pub(crate) left: Vec<(u64, DocumentId)>,
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) articles: BTreeMap<DocumentId, Article>,
    pub(crate) all: BTreeMap<ClusterId, Story>,
    story_of: BTreeMap<DocumentId, ClusterId>,
}

impl History {
    pub(crate) fn apply(&mut self, day: u64, change: &ClusterChange) {
        let id = change.cluster;
        match change.event {
            ClusterEvent::Joined { document } => {
                let before = self.story_of.insert(document, id);
                self.take_out(before, document);
                let story = self.all.entry(id).or_default();
                story.articles.push(document);
                if before.is_none() {
                    story.joined.push((day, document));
                }
            }
            ClusterEvent::Left { document } => {
                let before = self.story_of.remove(&document);
                self.take_out(before, document);
                self.all.entry(id).or_default().left.push((day, document));
            }
            ClusterEvent::United { into } => {
                let story = self.all.entry(id).or_default();
                story.united = Some((day, into));
                let articles = std::mem::take(&mut story.articles);
                self.story_of
                    .extend(articles.iter().map(|article| (*article, into)));
                self.all.entry(into).or_default().articles.extend(articles);
            }
            ClusterEvent::SplitFrom { from } => {
                self.all.entry(id).or_default().split_from = Some((day, from));
            }
            // One that has ended has no articles.
            _ => {}
        }
    }

    fn take_out(&mut self, story: Option<ClusterId>, document: DocumentId) {
        if let Some(story) = story.and_then(|id| self.all.get_mut(&id)) {
            story.articles.retain(|article| *article != document);
        }
    }

    /// Returns the stories that have articles, with these from the oldest to the newest.
    pub(crate) fn stories(&self) -> impl Iterator<Item = (ClusterId, Vec<&Article>)> {
        self.all.iter().filter_map(|(id, story)| {
            let mut ids = story.articles.clone();
            ids.sort_unstable();
            let articles: Vec<&Article> =
                ids.iter().filter_map(|id| self.articles.get(id)).collect();
            (!articles.is_empty()).then_some((*id, articles))
        })
    }
}
