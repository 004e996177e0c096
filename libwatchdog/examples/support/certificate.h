/// \file
/// A certificate that nobody but its maker trusts.
#pragma once

#include <string>

namespace watchdog::test {

/// As PEM. A plain value.
struct Certificate {
  std::string certificate;
  std::string key;
};

/// Signed by itself, for one name (`DNS:localhost`) or address (`IP:127.0.0.1`), valid for an hour
/// from `age_seconds` ago.
[[nodiscard]] Certificate make_certificate(const std::string& subject, long age_seconds = 60);

}  // namespace watchdog::test
