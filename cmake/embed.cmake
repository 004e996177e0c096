# Writes ${OUTPUT}: the file ${INPUT} as a C++ string named ${NAME}.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT}.new
     "#pragma once\nnamespace watchdog {\ninline constexpr const char* ${NAME} = R\"embedded(${text})embedded\";\n}  // namespace watchdog\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
