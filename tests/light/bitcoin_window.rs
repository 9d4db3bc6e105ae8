//! Some hundred draws of the simulation of honest and forged windows. `rootlight-bench` has the long form.

#[path = "../../bench/src/bitcoin_window.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "the long form uses the rest")]
mod simulation;

use fastrand::Rng;
use rootlight::light::bitcoin::MIN_SUFFIX;
use simulation::{
    Miners, Skeleton, exact_acceptance, exact_contest, foreign_tags, forged_tags, forged_window,
    honest_window,
};

const DRAWS: u64 = 300;

#[test]
fn honest_windows_are_held_and_forged_ones_refused() {
    let bitcoin = Skeleton::mined(600);
    for (canonical, tagged) in [(0.198, 0.45), (0.25, 0.47), (0.31, 0.50)] {
        let miners = Miners { canonical, tagged, uncles_proven: 0.97 };
        for draw in 0..DRAWS {
            let outcome = honest_window(&bitcoin, miners, &mut Rng::with_seed(draw));
            assert!(outcome.holds(), "draw {draw} with {canonical}: {outcome:?}");
        }
    }
    for draw in 0..10 * DRAWS {
        let report = forged_window(&bitcoin, &mut Rng::with_seed(draw));
        let refused = report.lags() || report.low().is_some() || report.judged < MIN_SUFFIX;
        assert!(refused, "draw {draw}: {report:?}");
    }
}

#[test]
fn false_tags_are_accepted_as_seldom_as_stated() {
    let stated = [(0.1, 8e-6, 3e-10), (0.2, 3.5e-4, 6e-7), (0.3, 3.6e-3, 6e-5)];
    for (attacker, at_36, at_72) in stated {
        let [few, many, both] = exact_acceptance(attacker, 0.45);
        let near = |found: f64, stated: f64| (0.8..1.25).contains(&(found / stated));
        assert!(
            near(few, at_36) && near(many, at_72) && both <= many,
            "{attacker}: {few:e} {many:e} {both:e}"
        );
    }
    let mut rng = Rng::with_seed(1);
    let accepted = (0..DRAWS).filter(|_| forged_tags(0.2, 0.45, 76, &mut rng) == [true; 2]);
    assert_eq!(accepted.count(), 0);
    // Without a second branch.
    let mut rng = Rng::with_seed(1);
    assert!((0..DRAWS).all(|_| forged_tags(0.45, 0.0, 76, &mut rng) == [true; 2]));
}

#[test]
fn a_hidden_branch_is_noticed_as_often_as_stated() {
    for (pool, blocks, stated) in [(0.1, 120, 0.34), (0.3, 120, 0.71), (0.1, 240, 0.63), (0.3, 480, 0.999)] {
        let mut rng = Rng::with_seed(7);
        let draws = 10 * DRAWS;
        let noticed = (0..draws).filter(|_| foreign_tags(pool, blocks, &mut rng) > 0).count();
        let share = noticed as f64 / draws as f64;
        assert!((share - stated).abs() < 0.05, "{pool} {blocks}: {share}");
    }
}

/// Beside a pool that writes made-up tags into all its blocks, and for a false chain that this pool makes.
#[test]
fn false_chains_are_refused_and_honest_ones_rarely_contested() {
    for (pool, accepted, found, false_alarm) in [
        (0.05, 3e-13, 0.999_9, 2e-5),
        (0.10, 2e-10, 0.999_9, 6e-4),
        (0.20, 4e-7, 0.997, 0.023),
        (0.30, 4e-5, 0.94, 0.15),
    ] {
        let [_, _, both] = exact_acceptance(pool, 0.45);
        assert!(both < accepted, "{pool}: {both}");
        assert!(exact_contest(pool, 0.45) > found, "{pool}: {}", exact_contest(pool, 0.45));
        assert!(exact_contest(0.45, pool) < false_alarm, "{pool}: {}", exact_contest(0.45, pool));
    }
}
