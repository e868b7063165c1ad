//! Hashes image files, stores the hashes, and refuses pictures that are already there.
//!
//! `cargo run -p resemblance-examples --features pictures --bin pictures` prints:
//!
//! ```text
//! hills.png is stored
//! hills-small.jpg is like hills.png, distance 2
//! hills-bright.png is like hills.png, distance 3
//! lake.png is stored
//! ```

use std::error::Error;
use std::path::Path;

use image::imageops::FilterType;
use image::{DynamicImage, Rgb, RgbImage};
use image_hasher::{Hasher, HasherConfig};
use resemblance::{Novelty, Schema, Signature, SimHash, Store};

/// Draws soft waves: the finest details of a photograph hardly matter to its hash.
fn drawn(length: f32) -> DynamicImage {
    let shade = |place: f32| (127.0 + 120.0 * place.sin()) as u8;
    let pixel = |x: u32, y: u32| {
        let (right, down) = (x as f32 / length, y as f32 / length);
        Rgb([right + down * down / 9.0, right * down / 3.0, down - right].map(shade))
    };
    RgbImage::from_fn(480, 320, pixel).into()
}

/// Returns the hash of an image file: 256 bits, 16 rows of 16.
fn hashed(hasher: &Hasher, path: &Path) -> Result<Signature, Box<dyn Error>> {
    let hash = hasher.hash_image(&image::open(path)?);
    let bytes: [u8; 32] = hash.as_bytes().try_into()?;
    Ok(Signature::from_fingerprint(bytes))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (hills, lake) = (drawn(40.0), drawn(70.0));
    let small = hills.resize_exact(150, 100, FilterType::Triangle);
    let versions = [
        ("hills.png", &hills),
        ("hills-small.jpg", &small),
        ("hills-bright.png", &hills.brighten(20)),
        ("lake.png", &lake),
    ];
    let hasher = HasherConfig::new().hash_size(16, 16).to_hasher();
    let simhash = SimHash::external(256).max_distance(31);
    let schema = Schema::builder().simhash(simhash).build()?;
    let store = Store::create(folder.path().join("pictures.rsm"), schema)?;
    for (name, picture) in versions {
        let path = folder.path().join(name);
        picture.save(&path)?;
        match store.insert_if_new(name, &hashed(&hasher, &path)?)? {
            Novelty::NearDuplicate(found) => println!("{name} is like {found}"),
            _ => println!("{name} is stored"),
        }
    }
    Ok(())
}
