//! `--link`: a network by a few figures, which may be unlike in its two directions.
//!
//! Model:   the network `link` with the better figure of both directions, and in the other one what it lacks, as faults from the start on. So a slower
//!          direction serialises frames once more, at its rate.
//! Checked: `figures_become_a_network_and_its_directions`; `lab_networks` of the command.

use sonde_link::{Fault, Port};
use sonde_units::{BitRate, Ratio, Span};
use std::fmt::Display;
use std::str::FromStr;

/// A link of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The network that it is.
    pub selector: String,
    /// From the first host to the others, and from them to it: what the direction has beyond the network.
    unlike: [Vec<Unlike>; 2],
}

/// What a direction has beyond the network.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unlike {
    Rate(BitRate),
    Delay(Span),
    Loss(Ratio),
}

impl Link {
    /// The faults that make its directions between so many hosts.
    pub fn faults(&self, hosts: u16) -> Vec<Fault> {
        let [others, first] = &self.unlike;
        let mut all = Vec::new();
        for (unlike, receivers) in [(others, 1..hosts), (first, 0..1)] {
            for what in unlike {
                all.extend(receivers.clone().map(|host| what.fault(Port(host))));
            }
        }
        all
    }
}

impl Unlike {
    fn fault(self, to: Port) -> Fault {
        let port = Some(to);
        match self {
            Self::Rate(rate) => Fault::Slow {
                from: None,
                to,
                rate: Some(rate),
            },
            Self::Delay(by) => Fault::Delay { port, by },
            Self::Loss(share) => Fault::Loss { port, share },
        }
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "write 100Mbit,10ms,1%,2ms, or A/B for a figure: A from the first host, B to it";
        let mut selector = "link".to_owned();
        let mut unlike = [Vec::new(), Vec::new()];
        let mut values = text.split(',');
        for knob in ["rate", "delay", "loss", "jitter"] {
            let Some(value) = values.next() else {
                break;
            };
            if value.is_empty() {
                return Err(format!("its {knob} is empty: {FORM}"));
            }
            // A share may be a fraction.
            let pair = value
                .split_once('/')
                .filter(|_| knob != "loss" || value.contains('%'));
            let own = match (knob, pair) {
                ("rate", Some(pair)) => {
                    let rates: [BitRate; 2] = both(knob, pair)?;
                    let [a, b] = rates;
                    for (rate, unlike) in rates.into_iter().zip(&mut unlike) {
                        unlike.extend((rate < a.max(b)).then_some(Unlike::Rate(rate)));
                    }
                    a.max(b).to_string()
                }
                ("delay", Some(pair)) => {
                    let delays: [Span; 2] = both(knob, pair)?;
                    let [a, b] = delays;
                    for (delay, unlike) in delays.into_iter().zip(&mut unlike) {
                        let more = delay - a.min(b);
                        unlike.extend((!more.is_zero()).then_some(Unlike::Delay(more)));
                    }
                    a.min(b).to_string()
                }
                ("loss", Some(pair)) => {
                    let shares: [Ratio; 2] = both(knob, pair)?;
                    for (share, unlike) in shares.into_iter().zip(&mut unlike) {
                        unlike.push(Unlike::Loss(share));
                    }
                    "0".to_owned()
                }
                _ => value.to_owned(),
            };
            selector += &format!(":{knob}={own}");
        }
        if values.next().is_some() {
            return Err(format!("a link has four values at most: {FORM}"));
        }
        let selector =
            sonde_link::selector_of_option(&selector).map_err(|error| error.to_string())?;
        Ok(Self { selector, unlike })
    }
}

/// A figure of both directions.
fn both<T: FromStr<Err: Display>>(knob: &str, (from, to): (&str, &str)) -> Result<[T; 2], String> {
    let read = |one: &str| one.parse().map_err(|error| format!("its {knob}: {error}"));
    Ok([read(from)?, read(to)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_a_network_and_its_directions() {
        let link = |text: &str| text.parse::<Link>();
        let faults = |text: &str| {
            let all = link(text).unwrap().faults(3);
            let shown = all.into_iter();
            let shown = shown.map(|fault| sonde_link::Command::Fault(fault).to_string());
            shown.collect::<Vec<_>>()
        };
        assert_eq!(link("10Mbit").unwrap().selector, "link:rate=10Mbit");
        let whole = link("10Mbit,5ms,1/100,2ms").unwrap();
        let selector = "link:rate=10Mbit:delay=5ms:loss=1/100:jitter=2ms";
        assert_eq!(whole.selector, selector);
        assert!(whole.faults(3).is_empty());
        // The better figure is the network's; what the worse direction has beyond it is for its receivers.
        let uneven = link("100Mbit/10Mbit,30ms/10ms").unwrap();
        assert_eq!(uneven.selector, "link:rate=100Mbit:delay=10ms");
        assert_eq!(
            faults("100Mbit/10Mbit,30ms/10ms"),
            ["delay h2 20ms", "delay h3 20ms", "rate h1 10Mbit"]
        );
        assert_eq!(
            faults("100Mbit,1ms,2%/0%"),
            ["loss h2 2/100", "loss h3 2/100", "loss h1 0/100"]
        );
        for (text, said) in [
            ("", "its rate is empty"),
            ("10Mbit,,1%", "its delay is empty"),
            ("10Mbit,1ms,0,1ms,3", "four values at most"),
            ("10Mbit/x", "its rate"),
            ("10Mbit,1ms/2", "its delay"),
            ("10Mbit,1ms,1%,2ms/3ms", "jitter"),
            ("fast", "fast"),
        ] {
            let problem = link(text).unwrap_err();
            assert!(problem.contains(said), "{text}: {problem}");
        }
    }
}
