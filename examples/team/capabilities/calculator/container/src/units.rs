//! Units of measure: each is a quantity, a factor to the quantity's base unit and, for temperatures, an offset.

/// What is measured. Only units of one quantity convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Length,
    Mass,
    Volume,
    Temperature,
    Speed,
}

/// `base = (value + offset) * factor`.
#[derive(Debug, PartialEq)]
struct Unit {
    name: &'static str,
    quantity: Quantity,
    factor: f64,
    offset: f64,
}

const fn unit(name: &'static str, quantity: Quantity, factor: f64, offset: f64) -> Unit {
    Unit {
        name,
        quantity,
        factor,
        offset,
    }
}

use Quantity::{Length, Mass, Speed, Temperature, Volume};

/// Base units are metre, gram, litre, kelvin and metre per second. The factors are exact by definition.
const UNITS: [Unit; 25] = [
    unit("mm", Length, 0.001, 0.0),
    unit("cm", Length, 0.01, 0.0),
    unit("m", Length, 1.0, 0.0),
    unit("km", Length, 1_000.0, 0.0),
    unit("in", Length, 0.0254, 0.0),
    unit("ft", Length, 0.3048, 0.0),
    unit("yd", Length, 0.9144, 0.0),
    unit("mi", Length, 1_609.344, 0.0),
    unit("g", Mass, 1.0, 0.0),
    unit("kg", Mass, 1_000.0, 0.0),
    unit("oz", Mass, 28.349_523_125, 0.0),
    unit("lb", Mass, 453.592_37, 0.0),
    unit("ml", Volume, 0.001, 0.0),
    unit("l", Volume, 1.0, 0.0),
    unit("tsp", Volume, 0.004_928_921_593_75, 0.0),
    unit("tbsp", Volume, 0.014_786_764_781_25, 0.0),
    unit("cup", Volume, 0.236_588_236_5, 0.0),
    unit("fl_oz", Volume, 0.029_573_529_562_5, 0.0),
    unit("gal", Volume, 3.785_411_784, 0.0),
    unit("celsius", Temperature, 1.0, 273.15),
    unit("fahrenheit", Temperature, 5.0 / 9.0, 459.67),
    unit("kelvin", Temperature, 1.0, 0.0),
    unit("m_s", Speed, 1.0, 0.0),
    unit("km_h", Speed, 1.0 / 3.6, 0.0),
    unit("mph", Speed, 0.447_04, 0.0),
];

/// Converts, and rounds to ten significant digits so that binary fractions do not show.
pub(crate) fn convert(value: f64, from: &str, to: &str) -> Result<f64, String> {
    let (from, to) = (find(from)?, find(to)?);
    if from.quantity != to.quantity {
        return Err(format!(
            "{} measures {:?} and {} measures {:?}",
            from.name, from.quantity, to.name, to.quantity
        )
        .to_lowercase());
    }
    let base = (value + from.offset) * from.factor;
    if from.quantity == Temperature && base < 0.0 {
        return Err(format!("{value} {} is below absolute zero", from.name));
    }
    let result = rounded(base / to.factor - to.offset);
    if result.is_finite() {
        Ok(result)
    } else {
        Err(format!("{value} {} is too large", from.name))
    }
}

fn find(name: &str) -> Result<&'static Unit, String> {
    UNITS.iter().find(|unit| unit.name == name).ok_or_else(|| {
        let known: Vec<&str> = UNITS.iter().map(|unit| unit.name).collect();
        format!(
            "unknown unit `{}`; known are {}",
            name.escape_debug(),
            known.join(", ")
        )
    })
}

fn rounded(value: f64) -> f64 {
    // Ten digits survive a trip through text exactly; the text's own form cannot fail to parse.
    format!("{value:.9e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_conversions_hold() {
        for (value, from, to, expected) in [
            (1.0, "mi", "km", 1.609344),
            (100.0, "celsius", "fahrenheit", 212.0),
            (-40.0, "fahrenheit", "celsius", -40.0),
            (0.0, "kelvin", "celsius", -273.15),
            (2.0, "cup", "ml", 473.176473),
            (1.0, "lb", "oz", 16.0),
            (36.0, "km_h", "m_s", 10.0),
            (0.0, "in", "cm", 0.0),
        ] {
            assert_eq!(
                convert(value, from, to),
                Ok(expected),
                "{value} {from} in {to}"
            );
        }
    }

    #[test]
    fn there_and_back_is_the_same_for_every_pair() {
        for from in &UNITS {
            for to in UNITS.iter().filter(|to| to.quantity == from.quantity) {
                let there = convert(123.456, from.name, to.name).unwrap();
                let back = convert(there, to.name, from.name).unwrap();
                assert!(
                    (back - 123.456).abs() < 1e-4,
                    "{} in {}",
                    from.name,
                    to.name
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_converted_says_why() {
        for (value, from, to, expected) in [
            (1.0, "kg", "km", "kg measures mass and km measures length"),
            (1.0, "Kg", "g", "unknown unit `Kg`; known are mm,"),
            (-300.0, "celsius", "kelvin", "below absolute zero"),
            (f64::MAX, "km", "mm", "too large"),
        ] {
            let error = convert(value, from, to).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
