//! Closed forms for the write amplification of a page-mapped log under independent single-page overwrites.
//! `rho` is live pages over the pages that are not kept free or open, `b` pages per block. All are solved by
//! bisection.

/// Bisects a function that grows from negative to positive.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Oldest block first: 1 - 1/A = exp(-1 / (rho A)) (Desnoyers 2012; Xiang and Kurkoski 2012). Independent of
/// `b`.
pub fn fifo(rho: f64) -> f64 {
    root(1.0, 1e4, |a| 1.0 - 1.0 / a - (-1.0 / (rho * a)).exp())
}

/// Any block: the victim is as full as the device.
pub fn random(rho: f64) -> f64 {
    1.0 / (1.0 - rho)
}

/// Emptiest block first (Bux and Iliadis 2010; Desnoyers 2012): every block is taken at `m` valid pages, or
/// on falling to `m - 1` in a share `q` of the cases.
pub fn greedy(rho: f64, b: u32) -> f64 {
    let size = f64::from(b);
    let mut harmonic = 0.0;
    for m in (1..=b).rev() {
        // rho b (q/m + harmonic) = b - m + q, with harmonic = sum of 1/i over i = m+1 ..= b.
        let level = f64::from(m);
        let q = (size - level - rho * size * harmonic) / (rho * size / level - 1.0);
        if (0.0..=1.0).contains(&q) && m < b {
            return size / (size - level + q);
        }
        harmonic += 1.0 / level;
    }
    1.0
}

/// The emptiest of `d` drawn at random (Van Houdt 2013): `s[i]` is the share of blocks with at most `i` valid
/// pages.
pub fn d_choices(rho: f64, b: u32, d: u32) -> f64 {
    // 1 - (1 - s)^d, also for an s that 1 - s would lose.
    let picks = |s: f64| -(f64::from(d) * (-s.min(1.0)).ln_1p()).exp_m1();
    // s[b] and the sum of the pick probabilities for given s[0] and g.
    let integrate = |s0: f64, g: f64| {
        let (mut s, mut sum) = (s0, 0.0);
        for i in 0..b {
            let w = picks(s);
            sum += w;
            s += g * rho * f64::from(b) * w / f64::from(i + 1);
        }
        (s, sum)
    };
    // s[b] = 1 fixes s[0], which may be tiny, so its logarithm is sought; g x sum = 1 fixes g.
    let start = |g: f64| root(-200.0, 0.0, |log_s0| integrate(log_s0.exp(), g).0 - 1.0).exp();
    let g = root(1.0 / f64::from(b), 100.0 / f64::from(b), |g| g * integrate(start(g), g).1 - 1.0);
    g * f64::from(b)
}

/// A share `f` of the pages takes a share `r` of the writes, evenly within each.
#[derive(Clone, Copy, Debug)]
pub struct HotCold {
    /// Share of the pages.
    pub f: f64,
    /// Share of the writes.
    pub r: f64,
}

/// Hot and cold pages in one log, oldest block first: what is still valid after a round trip of the log is
/// written again.
pub fn fifo_hot_cold(rho: f64, HotCold { f, r }: HotCold) -> f64 {
    root(1.0, 1e4, |a| {
        let t = 1.0 / (rho * a);
        let died = |writes: f64, pages: f64| writes / (1.0 - (-t * writes / pages).exp());
        a - (died(r, f) + died(1.0 - r, 1.0 - f))
    })
}

/// Hot and cold pages in one log, emptiest block first. A block is `(h, c)` valid hot and cold pages, each
/// dying at its own rate, and is taken at a mean of `j` valid pages in all; the next block inherits the
/// victim's pages and is filled up with fresh ones.
pub fn greedy_hot_cold(rho: f64, b: u32, load: HotCold) -> f64 {
    let size = f64::from(b);
    // Grows with j: blocks live shorter. The distribution carries over from one trial to the next, which only
    // saves iterations.
    let start = std::cell::RefCell::new(binomial(b, load.r));
    let j = root(0.01, size - 0.01, |j| {
        let life = life_of_block(b, j, load, &mut start.borrow_mut());
        1.0 / rho - life * size / (size - j)
    });
    size / (size - j)
}

/// Mean life of a block in units of U host writes, at the fixed point of the hot pages `hot[h]` a new block
/// has.
fn life_of_block(b: u32, j: f64, HotCold { f, r }: HotCold, hot: &mut Vec<f64>) -> f64 {
    let (hot_rate, cold_rate) = (r / f, (1.0 - r) / (1.0 - f));
    let m = j.ceil() as u32;
    let q = f64::from(m) - j;
    let fresh = [m, m - 1].map(|valid| binomial(b - valid, r));
    for _ in 0..10_000 {
        let mut level = hot.clone();
        let mut life = 0.0;
        let mut next = vec![0.0; b as usize + 1];
        for valid in (m.saturating_sub(1)..=b).rev() {
            // `level[h]`: chance of h hot pages among `valid`. Victims at m are 1 - q of all, at m - 1 the
            // rest.
            for (taken, share, fresh) in [(m, 1.0 - q, &fresh[0]), (m - 1, q, &fresh[1])] {
                if valid == taken {
                    for (h, p) in level.iter().enumerate() {
                        for (k, chance) in fresh.iter().enumerate() {
                            if p * chance > 0.0 {
                                next[h + k] += share * p * chance;
                            }
                        }
                    }
                }
            }
            if valid == m - 1 {
                break;
            }
            let weight = if valid == m { q } else { 1.0 };
            let mut below = vec![0.0; b as usize + 1];
            for (h, p) in level.iter().enumerate().take(valid as usize + 1) {
                let hot_deaths = h as f64 * hot_rate;
                let deaths = hot_deaths + f64::from(valid - h as u32) * cold_rate;
                life += weight * p / deaths;
                below[h] += p * (1.0 - hot_deaths / deaths);
                if h > 0 {
                    below[h - 1] += p * hot_deaths / deaths;
                }
            }
            level = below;
        }
        let change: f64 = next.iter().zip(&*hot).map(|(a, b)| (a - b).abs()).sum();
        *hot = next;
        if change < 1e-9 {
            return life;
        }
    }
    panic!("no fixed point for b = {b}, j = {j}");
}

/// Chances of 0 ..= n successes.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; row.len() + 1];
        for (k, chance) in row.iter().enumerate() {
            next[k] += chance * (1.0 - p);
            next[k + 1] += chance * p;
        }
        row = next;
    }
    row
}

/// Hot and cold pages in two logs, of which hot has a share `x` of the blocks: each is a device of its own.
/// `a` is the uniform law.
pub fn two_logs(rho: f64, HotCold { f, r }: HotCold, x: f64, a: impl Fn(f64) -> f64) -> f64 {
    r * a(f * rho / x) + (1.0 - r) * a((1.0 - f) * rho / (1.0 - x))
}

/// The share of the blocks at which [`two_logs`] is least, and how little that is. By golden section, between
/// the shares at which one of the logs has no block to spare.
pub fn best_split(rho: f64, load: HotCold, a: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (load.f * rho * 1.001, 1.0 - (1.0 - load.f) * rho * 1.001);
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let waf = |x| two_logs(rho, load, x, &a);
    for _ in 0..80 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if waf(left) < waf(right) { high = right } else { low = left }
    }
    let x = f64::midpoint(low, high);
    (x, waf(x))
}

/// Hot and cold pages in two logs, emptiest block of all first. Every block is taken at `m` valid pages or on
/// falling to `m - 1`, but blocks at `m` wait their turn, and while they wait a hot one falls more often than
/// a cold one: a share `q = 1 - exp(-m rate wait)` of each kind does. With equal rates this is [`greedy`];
/// with different ones it lies a little below.
pub fn two_logs_greedy(rho: f64, b: u32, HotCold { f, r }: HotCold) -> f64 {
    let size = f64::from(b);
    let kinds = [(f, r), (1.0 - f, 1.0 - r)];
    let mut harmonic = 0.0;
    for m in (1..b).rev() {
        harmonic += 1.0 / f64::from(m + 1);
        let level = f64::from(m);
        let falls = |pages: f64, writes: f64, wait: f64| 1.0 - (-level * writes / pages * wait).exp();
        // Blocks, times b, over live pages: a kind's share of the pages times the life of its blocks over the
        // pages each gains.
        let space = |wait: f64| -> f64 {
            let of = |(pages, writes): (f64, f64)| {
                let q = falls(pages, writes, wait);
                size * pages * (harmonic + q / level) / (size - level + q)
            };
            kinds.into_iter().map(of).sum()
        };
        if space(1e9) >= 1.0 / rho {
            let wait = root(0.0, 1e3, |wait| space(wait) - 1.0 / rho);
            let programs = |(pages, writes)| writes * size / (size - level + falls(pages, writes, wait));
            return kinds.into_iter().map(programs).sum();
        }
    }
    1.0
}
