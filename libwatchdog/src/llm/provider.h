/// \file
/// Finds whose model server it is.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// Returns the provider of the model server at a URL: a known one's name (`anthropic`, `openai`,
/// `gemini`, `openrouter`, `groq`, `azure`), else the server's host. Empty: it has no name, as a
/// server of this machine or an address.
[[nodiscard]] std::string provider_of_url(std::string_view url);

/// Returns the provider that an error's text names. Empty: it names none. The name of a model is
/// not taken for one, because several providers have it.
[[nodiscard]] std::string_view provider_in_text(std::string_view text);

}  // namespace watchdog
