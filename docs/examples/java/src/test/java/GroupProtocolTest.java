import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Fencepost starts the broker as fencepost.toml says, and tests it. FENCEPOST is the command of the kit, such as
 * "python3 fencepost.pyz"; FENCEPOST_ARGS are further arguments.
 */
class GroupProtocolTest {
    /** The smoke scenarios, in a quarter of a minute: `mvn test`. */
    @Test
    void keepsTheGroupProtocolInShort() throws Exception {
        testBroker(List.of("--smoke"));
    }

    /** Everything, in some minutes: `mvn test -DexcludedGroups= -Dgroups=whole`. */
    @Test
    @Tag("whole")
    void keepsTheGroupProtocol() throws Exception {
        testBroker(List.of());
    }

    private static void testBroker(List<String> extent) throws Exception {
        var words = new ArrayList<>(wordsOf("FENCEPOST", "fencepost"));
        words.addAll(List.of("test", "--profile", "fencepost.toml"));
        words.addAll(extent);
        words.addAll(wordsOf("FENCEPOST_ARGS", ""));
        var kit = new ProcessBuilder(words).redirectErrorStream(true).start();
        var report = new String(kit.getInputStream().readAllBytes());
        System.out.println(report);
        switch (kit.waitFor()) {
            case 0 -> {}
            case 1 -> fail("the broker violates the group protocol\n" + report);
            case 3 -> fail("the run was cut short, or something stayed undecided\n" + report);
            default -> fail("Fencepost could not run\n" + report);
        }
    }

    private static List<String> wordsOf(String variable, String otherwise) {
        var text = System.getenv().getOrDefault(variable, otherwise).strip();
        return text.isEmpty() ? List.of() : List.of(text.split("\\s+"));
    }
}
