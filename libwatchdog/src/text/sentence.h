/// \file
/// The beginning of a sentence for people.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// Makes `text` begin with a capital letter. A name, a path or a code at the beginning stays as it
/// is, and `subject` is put in front of it.
[[nodiscard]] std::string sentence(std::string text, std::string_view subject = {});

}  // namespace watchdog
