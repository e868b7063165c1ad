//! The search for the parts that are near a signature: sets of documents that are connected, such as
//! the clusters of a store. One near document of each part is found, and not all.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::format::Posting;
use crate::index::ProbeControl;
use crate::invariant::at;
use crate::query::bounds::ResolvedBounds;
use crate::query::buckets::{LaneProbe, read_postings, read_whole};
use crate::query::candidates::{Candidate, Gathered};
use crate::query::collect::Collector;
use crate::query::equal_classes::EqualClasses;
use crate::query::plan::ProbePlan;
use crate::query::score::Scored;
use crate::query::search::SearchSpec;
use crate::read::ReadView;
use crate::state::{BucketKey, FullBuckets};
use resemblance_sketch::schema::Linkage;
use resemblance_sketch::sketch::Signature;

/// The maximum number of documents that are compared at once.
const MOST_TOGETHER: usize = 256;

/// Returns the part of a document, or `None` if it is the only one of its part.
pub(crate) type PartOf<'p> = dyn Fn(u64) -> Result<Option<u64>> + 'p;

/// Finds near documents in different parts.
pub(crate) struct PartSearch<'s> {
    spec: SearchSpec<'s>,
    part_of: &'s PartOf<'s>,
    /// Only documents with lower ids are found.
    below: u64,
    /// True if an identical document is near the same documents.
    trusts_identical: bool,
    /// True if only the newest of equal documents is read.
    folds_equal: bool,
}

impl<'s> PartSearch<'s> {
    pub(crate) fn new(
        view: &'s dyn ReadView,
        bounds: &'s ResolvedBounds,
        part_of: &'s PartOf<'s>,
    ) -> Self {
        let context = view.context();
        let minhash = context.schema.minhash();
        let is_weighted = minhash.is_some_and(|minhash| minhash.kind().is_weighted());
        let linkage = context.schema.clusters().map(|kept| kept.linkage);
        // With another linkage, identical documents can be in different clusters.
        let is_single = matches!(linkage, None | Some(Linkage::Single));
        let spec = SearchSpec {
            bounds: Some(bounds),
            ..SearchSpec::new(view, Collector::up_to(None))
        };
        Self {
            part_of,
            below: u64::MAX,
            // Sets of proportional weights can be equally near to others but for rounding.
            trusts_identical: is_single && (context.exact.is_none() || !is_weighted),
            folds_equal: is_single && !spec.referee.verifies(),
            spec,
        }
    }

    /// Finds only documents below an id.
    pub(crate) fn below(self, id: u64) -> Self {
        Self { below: id, ..self }
    }

    /// Returns a near document of each part except `own`, and each of no part, the newest first.
    ///
    /// With `full`, parts are clusters: near documents are in one part. An identical document is then
    /// returned alone, because it is connected to all that are near, unless clusters have another
    /// linkage than single. A bucket that is known is not read if one of the newest documents of its
    /// leading part is near, or if that part is `own`.
    pub(crate) fn near(
        &self,
        signature: &Signature,
        own: Option<u64>,
        full: Option<&mut FullBuckets>,
    ) -> Result<Vec<Scored>> {
        if !self.spec.view.context().is_filed(signature) {
            return Ok(Vec::new());
        }
        let plan = self.spec.plan([signature])?;
        let mut found = FoundParts {
            search: self,
            signature,
            parts: own.into_iter().collect(),
            labels: HashMap::new(),
            near: Vec::new(),
            compared: HashSet::new(),
            trusts_identical: full.is_some() && self.trusts_identical,
            is_complete: false,
        };
        match full {
            Some(full) => self.search(&plan, &mut found, full)?,
            None => {
                let (candidates, _) = self.read(&plan, &self.probes(&plan), false)?;
                found.compare(candidates)?;
            }
        }
        found.near.sort_unstable_by_key(|scored| Reverse(scored.id));
        Ok(found.near)
    }

    fn probes(&self, plan: &ProbePlan) -> Vec<LaneProbe> {
        LaneProbe::of_plan(self.spec.view, plan)
    }

    fn search(
        &self,
        plan: &ProbePlan,
        found: &mut FoundParts<'_>,
        full: &mut FullBuckets,
    ) -> Result<()> {
        let (led, read): (Vec<LaneProbe>, Vec<LaneProbe>) = self
            .probes(plan)
            .into_iter()
            .partition(|probe| full.leader(probe.key()).is_some());
        let candidate = |probe: &LaneProbe, posting| {
            let accepts = probe.accepts(plan, posting);
            accepts.then(|| probe.candidate(plan, posting))
        };
        for probe in &led {
            let leader = full.leader(probe.key());
            if leader.is_some_and(|part| !found.parts.contains(&part)) {
                let newest = full.newest(probe.key());
                found.compare(newest.filter_map(|it| candidate(probe, it)).collect())?;
            }
        }
        if found.is_complete {
            return Ok(());
        }
        let (mut candidates, postings) = self.read(plan, &read, self.folds_equal)?;
        for probe in &led {
            let others = full.others(probe.key());
            candidates.extend(others.filter_map(|it| candidate(probe, it)));
        }
        found.compare(candidates)?;
        for probe in &led {
            let Some(part) = full.leader(probe.key()) else {
                continue;
            };
            let labels = &found.labels;
            full.retain_others(probe.key(), |id| labels.get(&id) != Some(&Some(part)));
            if found.is_complete || found.parts.contains(&part) {
                continue;
            }
            let content = self.content(probe, found)?;
            let of_part = content.iter().filter(|(_, of)| *of == Some(part));
            let of_part: Vec<Posting> = of_part.map(|(posting, _)| *posting).collect();
            let candidates = of_part.iter().filter_map(|it| candidate(probe, *it));
            found.compare(candidates.collect())?;
            let near = found.near.iter().map(|near| near.id);
            if let Some(near) = near
                .rev()
                .find_map(|id| of_part.iter().find(|it| it.id == id))
            {
                full.add(probe.key(), *near, Some(part));
            }
        }
        // This may forget others.
        for (probe, postings) in read.iter().zip(postings) {
            if full.is_due(probe.key(), postings) {
                let content = self.content(probe, found)?;
                full.examine(probe.key(), postings, &content);
            }
        }
        Ok(())
    }

    /// Returns the candidates of these buckets, and the number of postings of each.
    fn read(
        &self,
        plan: &ProbePlan,
        probes: &[LaneProbe],
        folds_equal: bool,
    ) -> Result<(Vec<Candidate>, Vec<usize>)> {
        let view = self.spec.view;
        let mut classes = folds_equal.then(|| EqualClasses::new(view));
        let mut gathered = Gathered::new();
        let postings = read_whole(
            view,
            plan,
            probes,
            self.below,
            &mut gathered,
            classes.as_mut(),
        )?;
        let mut candidates = gathered.into_ascending();
        let Some(classes) = classes else {
            return Ok((candidates, postings));
        };
        let equal = classes.into_members()?;
        candidates.retain(|candidate| !equal.have(candidate.id));
        for class in equal.classes() {
            let mut newest = None;
            for id in class.take_while(|id| *id < self.below) {
                if !view.is_deleted(id) {
                    newest = Some(Candidate::new(id, 0));
                }
            }
            candidates.extend(newest);
        }
        Ok((candidates, postings))
    }

    /// Reads all postings of live documents in a bucket, with the parts of these.
    fn content(
        &self,
        probe: &LaneProbe,
        found: &mut FoundParts<'_>,
    ) -> Result<Vec<(Posting, Option<u64>)>> {
        let view = self.spec.view;
        let mut postings = Vec::new();
        read_postings(view, probe, &mut |posting| {
            if posting.id < self.below && !view.is_deleted(posting.id) {
                postings.push(posting);
            }
            Ok(ProbeControl::GoOn)
        })?;
        let mut content = Vec::with_capacity(postings.len());
        for posting in postings {
            let part = found.label(posting.id)?;
            // A document in memory that was removed has postings, and neither a part nor a row.
            let is_live = part.is_some()
                || posting.id < view.flushed_below()
                || view.with_head(posting.id, |_| Ok(()))?.is_some();
            if is_live {
                content.push((posting, part));
            }
        }
        Ok(content)
    }

    /// Returns a stored document if it is within the bounds of a signature and a search for this
    /// would find it.
    pub(crate) fn near_document(&self, signature: &Signature, id: u64) -> Result<Option<Scored>> {
        let view = self.spec.view;
        let Some(other) = view.signature_of(id)? else {
            return Ok(None);
        };
        if !view.context().is_filed(signature) || !view.context().is_filed(&other) {
            return Ok(None);
        }
        let plan = self.spec.plan([signature])?;
        let codes = self.spec.plan([&other])?;
        let codes: HashMap<u16, u64> = codes.row(0).map(|(lane, code)| (lane.lane, code)).collect();
        let found = self.probes(&plan).into_iter().find_map(|probe| {
            let code = *codes.get(&probe.key().0)?;
            let posting = Posting { code, id };
            let is_met = probe.has_code(code) && probe.accepts(&plan, posting);
            is_met.then(|| probe.candidate(&plan, posting))
        });
        let Some(candidate) = found else {
            return Ok(None);
        };
        Ok(self.scored(signature, &[candidate])?.pop())
    }

    /// Returns those of some candidates, ascending, that are within the bounds.
    fn scored(&self, signature: &Signature, candidates: &[Candidate]) -> Result<Vec<Scored>> {
        let mut found = [self.spec.nothing()];
        self.spec.score(&[signature], candidates, &mut found)?;
        let [mut found] = found;
        self.spec.verify_found(0, signature, &mut found)?;
        Ok(found.near.take())
    }

    /// Adds a document that has entered the store to the full buckets.
    pub(crate) fn add_to(
        &self,
        full: &mut FullBuckets,
        id: u64,
        signature: &Signature,
        part: Option<u64>,
    ) -> Result<()> {
        let context = self.spec.view.context();
        if full.is_empty() || !context.is_filed(signature) {
            return Ok(());
        }
        for (lane, code) in self.spec.plan([signature])?.row(0) {
            let key: BucketKey = (lane.lane, lane.bucket_range(context, code).0);
            full.add(key, Posting { code, id }, part);
        }
        Ok(())
    }
}

/// The parts that a search has found.
struct FoundParts<'f> {
    search: &'f PartSearch<'f>,
    signature: &'f Signature,
    parts: HashSet<u64>,
    /// The parts of documents that have been asked for.
    labels: HashMap<u64, Option<u64>>,
    near: Vec<Scored>,
    compared: HashSet<u64>,
    trusts_identical: bool,
    /// True once an identical document was found.
    is_complete: bool,
}

impl FoundParts<'_> {
    fn label(&mut self, id: u64) -> Result<Option<u64>> {
        if let Some(label) = self.labels.get(&id) {
            return Ok(*label);
        }
        let label = (self.search.part_of)(id)?;
        self.labels.insert(id, label);
        Ok(label)
    }

    /// Compares with candidates, the newest first, a few at a time: with none of a part that has been found.
    fn compare(&mut self, mut candidates: Vec<Candidate>) -> Result<()> {
        candidates.sort_unstable_by_key(|candidate| Reverse(candidate.id));
        candidates.dedup();
        let mut together = 1;
        let mut next = 0;
        while next < candidates.len() && !self.is_complete {
            let mut round = Vec::new();
            while next < candidates.len() && round.len() < together {
                let candidate = *at(&candidates, next)?;
                next += 1;
                let is_found = !self.parts.is_empty()
                    && self
                        .label(candidate.id)?
                        .is_some_and(|part| self.parts.contains(&part));
                if !is_found && self.compared.insert(candidate.id) {
                    round.push(candidate);
                }
            }
            round.sort_unstable();
            let scored = self.search.scored(self.signature, &round)?;
            self.take(scored)?;
            together = (2 * together).min(MOST_TOGETHER);
        }
        Ok(())
    }

    fn take(&mut self, mut near: Vec<Scored>) -> Result<()> {
        near.sort_unstable_by_key(|scored| Reverse(scored.id));
        let context = self.search.spec.view.context();
        for scored in near {
            if self.trusts_identical && scored.is_identical(context) {
                (self.near, self.is_complete) = (vec![scored], true);
                return Ok(());
            }
            if self
                .label(scored.id)?
                .is_none_or(|part| self.parts.insert(part))
            {
                self.near.push(scored);
            }
        }
        Ok(())
    }
}
