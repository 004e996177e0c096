/// \file
/// Files named by the SHA-256 of a content, in 256 directories: what is the same is there once.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "files/open_file.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The name of an object. `suffix` distinguishes forms of the same content. A plain value.
struct ObjectName {
  std::string digest;  ///< 64 digits
  std::string suffix{};
};

/// A plain value.
struct ObjectFacts {
  ObjectName name;
  std::uint64_t bytes = 0;  ///< Of the file.
  WallTime touched{};
};

/// The directory `objects`. Callers agree on who may add and remove. Thread-safe.
class Objects {
 public:
  Objects() = default;
  [[nodiscard]] static Result<Objects> open(const OpenFile& parent, const std::string& shown);

  /// Empty: errno says why. It may be anything but a link.
  [[nodiscard]] OpenFile find(const ObjectName& name) const;
  /// Puts a complete file in its place, durably: in place of whatever is there.
  [[nodiscard]] int publish(PendingFile& pending, const ObjectName& name) const;
  /// 0, also where it is gone already.
  [[nodiscard]] int remove(const ObjectName& name) const;

  /// Digests that begin so. REQUIRES: two digits or more.
  [[nodiscard]] std::vector<std::string> digests_from(std::string_view digits) const;
  /// Calls it for each object. Other files are skipped.
  void for_each(const std::function<void(const ObjectFacts&)>& look) const;

 private:
  [[nodiscard]] OpenFile folder_of(const std::string& digest) const;

  OpenFile directory_;
};

}  // namespace watchdog
