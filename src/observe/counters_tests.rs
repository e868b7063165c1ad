use super::*;
use redb_verified::Histogram;

use resemblance_sketch::sketch::mix64;

/// Lengths of all magnitudes, and those on both sides of the ends of buckets.
fn lengths() -> Vec<Duration> {
    let mut nanos = vec![0, 1, 999, 1_000, 1_001, u64::MAX];
    for exponent in 0..40 {
        let end = 1_000 << exponent;
        nanos.extend([end - 1, end, end + 1]);
    }
    nanos.extend((0..500).map(|number| mix64(number) >> (20 + number % 40)));
    nanos.into_iter().map(Duration::from_nanos).collect()
}

#[test]
fn latencies_are_counted_in_their_buckets() {
    let histogram = Histogram::default();
    let mut longest = Duration::ZERO;
    for length in lengths() {
        let before = Latencies::of(&histogram);
        assert_eq!(histogram.record(length), longest);
        longest = longest.max(length);
        let after = Latencies::of(&histogram);
        let mut changed = (0..32).filter(|i| before.buckets[*i] != after.buckets[*i]);
        let bucket = changed.next().unwrap();
        assert_eq!(changed.next(), None);
        assert_eq!(after.buckets[bucket], before.buckets[bucket] + 1);
        let end = Latencies::bucket_end(bucket);
        assert!(end.is_none_or(|end| length < end), "{length:?} in {bucket}");
        let begin = bucket.checked_sub(1).and_then(Latencies::bucket_end);
        assert!(
            begin.is_none_or(|begin| length >= begin),
            "{length:?} in {bucket}"
        );
        assert_eq!((after.count, after.longest), (before.count + 1, longest));
    }
    assert_eq!(
        Latencies::bucket_end(30),
        Some(Duration::from_micros(1 << 30))
    );
    assert_eq!(Latencies::bucket_end(31), None);
    assert_eq!(Latencies::bucket_end(usize::MAX), None);
}

#[test]
fn latency_quantiles_are_upper_bounds() {
    // None longer than the last bucket begins: there the longest is all that is known.
    let is_bounded = |length: &Duration| *length < Duration::from_micros(1 << 30);
    let mut lengths: Vec<Duration> = lengths().into_iter().filter(is_bounded).collect();
    let histogram = Histogram::default();
    for length in &lengths {
        histogram.record(*length);
    }
    lengths.sort_unstable();
    let latencies = Latencies::of(&histogram);
    for percent in 0..=100 {
        let share = f64::from(percent) / 100.0;
        let bound = latencies.quantile(share);
        let rank = (lengths.len() * percent as usize).div_ceil(100).max(1);
        let exact = lengths[rank - 1];
        assert!(exact <= bound, "{percent} %: {exact:?}, {bound:?}");
        // Rounding may take the next one.
        let next = lengths[rank.min(lengths.len() - 1)];
        let most = (next * 2).max(Duration::from_micros(1));
        assert!(bound <= most, "{percent} %: {next:?}, {bound:?}");
    }
    assert_eq!(latencies.quantile(1.0), *lengths.last().unwrap());
    assert_eq!(latencies.quantile(f64::NAN), latencies.quantile(0.0));
    let mean = lengths.iter().sum::<Duration>() / lengths.len() as u32;
    assert_eq!(latencies.mean(), Some(mean));
    assert_eq!(Latencies::default().quantile(0.5), Duration::ZERO);
    assert_eq!(Latencies::default().mean(), None);
}

#[test]
fn counter_names_match_their_fields() {
    let counters = SharedCounters::default();
    counters.count.inserted.add(3);
    counters.file.syncs.record(Duration::from_secs(1));
    let metrics = counters.get();
    let shown = metrics.to_string();
    let names = metrics.numbers().map(|(name, _)| name);
    let names: Vec<&str> = names
        .chain(metrics.latencies().map(|(name, _)| name))
        .collect();
    for name in &names {
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
        let first = format!("{name} ");
        let lines = shown.lines().filter(|line| line.starts_with(&first));
        assert_eq!(lines.count(), 1, "{name}");
    }
    assert!(metrics.numbers().any(|number| number == ("inserted", 3)));
    assert!(shown.contains("sync_latencies 1, mean 1.0s, 99 % within 1.0s, longest 1.0s"));
}

#[test]
fn waiting_calls_are_counted_up_and_down() {
    let counters = SharedCounters::default();
    let first = counters.begin_call();
    counters.call_waits();
    drop(first);
    counters.call_answered(Duration::from_secs(1));
    counters.group_committed(2);
    counters.group_committed(1);
    let metrics = counters.get();
    assert_eq!((metrics.calls_waiting, metrics.most_calls_waiting), (0, 2));
    assert_eq!((metrics.groups, metrics.largest_group), (2, 2));
    assert_eq!(metrics.call_latencies.count, 2);
}
