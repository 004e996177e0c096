#pragma once
#include <string>
#include <string_view>

#include "watchdog/time.h"
namespace watchdog::monitor {
std::string sentence_of_leaving(std::string_view user_agent, Millis lasted, Millis quiet,
                                bool answer_began);
}
