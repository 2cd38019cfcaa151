import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import javax.lang.model.element.Element;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;
import javax.tools.Diagnostic;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import com.sun.source.util.JavacTask;

/**
 * Compiles one file of code, whatever its classes are called, into FILE.classes, and writes the
 * arguments that run its main class into FILE.args: `java @FILE.args`. Exits with 1 and the
 * compiler's messages on stderr if that is not possible.
 */
public final class CompileFile {
    /** javac wants a public class in a file of its name; code that is sent has no such file. */
    private static final class Code extends SimpleJavaFileObject {
        private final String text;

        Code(Path file) throws IOException {
            super(URI.create("code:///" + file.getFileName()), Kind.SOURCE);
            text = Files.readString(file);
        }

        @Override
        public boolean isNameCompatible(String simpleName, Kind kind) {
            return true;
        }

        @Override
        public String getName() {
            return toUri().getPath().substring(1);
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    private static boolean hasMain(Elements elements, TypeElement type) {
        for (ExecutableElement method : ElementFilter.methodsIn(elements.getAllMembers(type))) {
            if (method.getSimpleName().contentEquals("main")
                    && method.getModifiers().containsAll(Set.of(Modifier.PUBLIC, Modifier.STATIC))
                    && method.getReturnType().getKind() == TypeKind.VOID
                    && method.getParameters().size() == 1
                    && method.getParameters().get(0).asType().toString().equals("java.lang.String[]")) {
                return true;
            }
        }
        return false;
    }

    private static int rank(TypeElement type) {
        if (type.getSimpleName().contentEquals("Main")) return 2;
        return type.getModifiers().contains(Modifier.PUBLIC) ? 1 : 0;
    }

    /** Of the classes with a main method the one called Main, else the public one, else the first. */
    private static String mainClass(Elements elements, Iterable<? extends Element> found) {
        TypeElement best = null;
        List<Element> list = new ArrayList<>();
        found.forEach(list::add);
        for (TypeElement type : ElementFilter.typesIn(list)) {
            if (hasMain(elements, type) && (best == null || rank(type) > rank(best))) best = type;
        }
        return best == null ? null : elements.getBinaryName(best).toString();
    }

    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[0]);
        Path classes = Path.of(file + ".classes");
        Files.createDirectories(classes);
        boolean[] failed = {false};
        JavacTask task = (JavacTask) ToolProvider.getSystemJavaCompiler().getTask(
                null, null,
                said -> {
                    if (said.getKind() != Diagnostic.Kind.NOTE) System.err.println(said);
                    failed[0] |= said.getKind() == Diagnostic.Kind.ERROR;
                },
                List.of("-d", classes.toString(), "-proc:none"), null, List.of(new Code(file)));
        String main = mainClass(task.getElements(), task.analyze());
        task.generate();
        if (!failed[0] && main == null) {
            System.err.println(file.getFileName() + ": error: no class has a public static void main(String[])");
        }
        if (failed[0] || main == null) System.exit(1);
        Files.writeString(Path.of(file + ".args"), "-cp \"" + classes + "\" " + main + "\n");
    }
}
