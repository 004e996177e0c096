// About which sessions the monitor asks a model by itself.

#include "api/unasked_check.h"

#include <gtest/gtest.h>

namespace watchdog::test {
namespace {

TEST(UnaskedCheck, a_hosted_server_is_asked_only_about_agents_that_use_it) {
  struct Row {
    const char* model_server;
    const char* check_server;
    const char* label;
    bool asks;
  };
  const Row rows[] = {
      {"http://127.0.0.1:8080/v1", "", "", true},
      {"https://api.example.com/v1", "", "", false},
      {"https://api.example.com/v1", "", "https://api.example.com", true},
      {"https://api.example.com/v1", "", "https://api.example.com:443/v1", true},
      {"https://api.example.com/v1", "", "http://api.example.com", false},
      {"https://api.example.com/v1", "", "https://api.example.com:8443", false},
      {"https://api.example.com/v1", "", "https://api.example.com.evil.org", false},
      {"https://api.example.com/v1", "", "api.example.com", false},
      {"https://api.example.com/v1", "https://checks.example.com", "", true},
      {"", "", "https://api.example.com", false},
  };
  for (const auto& row : rows) {
    Settings settings;
    settings.model.base_url = row.model_server;
    settings.checks.base_url = row.check_server;
    SessionSpec session;
    if (*row.label != '\0') session.labels["server"] = row.label;
    EXPECT_EQ(monitor::may_ask_unasked(settings, session), row.asks)
        << row.model_server << " " << row.label;
    settings.checks.on_suspicion = false;
    EXPECT_FALSE(monitor::may_ask_unasked(settings, session));
  }
}

}  // namespace
}  // namespace watchdog::test
