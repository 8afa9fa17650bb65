//! Reading a small text file that somebody else may have put there.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Most bytes of a file of settings.
const MOST: u64 = 1024 * 1024;

/// Reads a text file. A pipe, a device or a file without end is an error instead of a process that never starts.
///
/// # Errors
/// When the file cannot be read, is no regular file, has more than 1 MiB, or is no UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let file = open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {MOST} bytes")));
    }
    Ok(text)
}

/// Opening does not wait for the other end of a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        symlink("file", path("link")).unwrap();
        std::fs::write(path("large"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        std::fs::write(path("binary"), [0xff]).unwrap();
        std::fs::create_dir(path("dir")).unwrap();
        symlink("/dev/zero", path("device")).unwrap();
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read(&path(name)).unwrap(), "text", "{name}");
        }
        for name in ["large", "binary", "dir", "device", "pipe", "missing"] {
            assert!(read(&path(name)).is_err(), "{name}");
        }
    }
}
