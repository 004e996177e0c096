/// \file
/// Secrets of over a hundred shapes, as providers publish them and as people write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace watchdog::test {

/// A text with a secret in it. A plain value.
struct SecretSample {
  std::string text;
  std::string core;  ///< The part of it that must be found nowhere. No two have the same begin.
};

/// The same ones each time. Nobody who looks for secrets finds one here: they are made up when the
/// program runs.
[[nodiscard]] std::vector<SecretSample> secret_samples();

/// So many harmless texts, the same ones each time: code, logs, prose, commands, URLs, JSON. Many
/// have words in them that secrets have as well.
[[nodiscard]] std::vector<std::string> harmless_texts(std::size_t count);

}  // namespace watchdog::test
