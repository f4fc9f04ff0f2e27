import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Runs cases with the package com.microsoft.onnxruntime: java Run.java CASES [PROVIDER]. */
public class Run {
    private static final int TURNS = 3;
    private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

    private static long[] longs(JsonNode list) {
        long[] made = new long[list.size()];
        for (int i = 0; i < made.length; i++) made[i] = list.get(i).asLong();
        return made;
    }

    private static OnnxTensor tensor(JsonNode given) throws OrtException {
        JsonNode data = given.get("data");
        long[] dims = longs(given.get("dims"));
        switch (given.get("type").asText()) {
            case "float32":
                float[] floats = new float[data.size()];
                for (int i = 0; i < floats.length; i++) floats[i] = (float) data.get(i).asDouble();
                return OnnxTensor.createTensor(ENVIRONMENT, FloatBuffer.wrap(floats), dims);
            case "int64":
                return OnnxTensor.createTensor(ENVIRONMENT, LongBuffer.wrap(longs(data)), dims);
            case "string":
                String[] texts = new String[data.size()];
                for (int i = 0; i < texts.length; i++) texts[i] = data.get(i).asText();
                return OnnxTensor.createTensor(ENVIRONMENT, texts, dims);
            default:
                throw new IllegalArgumentException("a tensor of " + given.get("type") + ", which no case has");
        }
    }

    /** The elements in one list, of arrays of any depth. */
    private static void flatten(Object value, List<Object> out) {
        if (value instanceof Object[]) {
            for (Object item : (Object[]) value) flatten(item, out);
        } else {
            out.add(value);
        }
    }

    private static void compare(String name, OnnxValue found, JsonNode wanted) throws Exception {
        OnnxTensor tensor = (OnnxTensor) found;
        TensorInfo info = tensor.getInfo();
        long[] dims = longs(wanted.get("dims"));
        if (!Arrays.equals(info.getShape(), dims)) {
            throw new Exception(name + " is " + Arrays.toString(info.getShape()) + ", expected " + Arrays.toString(dims));
        }
        JsonNode data = wanted.get("data");
        float[] floats = info.type == OnnxJavaType.FLOAT ? tensor.getFloatBuffer().array() : null;
        long[] integers = info.type == OnnxJavaType.INT64 ? tensor.getLongBuffer().array() : null;
        List<Object> texts = new ArrayList<>();
        if (info.type == OnnxJavaType.STRING) flatten(tensor.getValue(), texts);
        for (int i = 0; i < data.size(); i++) {
            JsonNode want = data.get(i);
            boolean near = floats != null
                    ? Math.abs(floats[i] - want.asDouble()) <= 1e-4 * (1 + Math.abs(want.asDouble()))
                    : integers != null ? integers[i] == want.asLong() : texts.get(i).equals(want.asText());
            if (!near) throw new Exception(name + "[" + i + "] is not " + want);
        }
    }

    private static OrtSession.SessionOptions options(String provider) throws OrtException {
        OrtSession.SessionOptions made = new OrtSession.SessionOptions();
        switch (provider) {
            case "rocm": made.addROCM(0); break;
            case "cuda": made.addCUDA(new OrtCUDAProviderOptions(0)); break;
            case "cpu": break;
            default: throw new IllegalArgumentException("provider " + provider + "; known are cpu, rocm, cuda");
        }
        return made;
    }

    /** Opens the case's model from a path and from memory, and runs each. */
    private static void run(Path folder, String provider) throws Exception {
        JsonNode given = new ObjectMapper().readTree(folder.resolve("case.json").toFile());
        Path model = folder.resolve("model.onnx");
        for (int source = 0; source < 2; source++) {
            try (OrtSession.SessionOptions options = options(provider);
                    OrtSession session = source == 0
                            ? ENVIRONMENT.createSession(model.toString(), options)
                            : ENVIRONMENT.createSession(Files.readAllBytes(model), options)) {
                Map<String, OnnxTensor> feeds = new HashMap<>();
                for (Iterator<Map.Entry<String, JsonNode>> i = given.get("inputs").fields(); i.hasNext(); ) {
                    Map.Entry<String, JsonNode> input = i.next();
                    feeds.put(input.getKey(), tensor(input.getValue()));
                }
                for (int turn = 0; turn < TURNS; turn++) {
                    try (OrtSession.Result result = session.run(feeds)) {
                        for (Iterator<Map.Entry<String, JsonNode>> i = given.get("outputs").fields(); i.hasNext(); ) {
                            Map.Entry<String, JsonNode> output = i.next();
                            compare(output.getKey(), result.get(output.getKey()).get(), output.getValue());
                        }
                    }
                }
                feeds.values().forEach(OnnxTensor::close);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String provider = arguments.length > 1 ? arguments[1] : "cpu";
        File[] folders = new File(arguments[0]).listFiles(File::isDirectory);
        int failed = 0;
        for (File folder : folders) {
            try {
                run(folder.toPath(), provider);
            } catch (Exception error) {
                failed++;
                System.err.println(folder.getName() + ": " + error.getMessage());
            }
        }
        // A wrong model is an error, which does not end the program.
        try (OrtSession session = ENVIRONMENT.createSession("no model".getBytes())) {
            failed++;
            System.err.println("bytes that are no model open");
        } catch (OrtException expected) {
            // As it should be.
        }
        System.out.printf("onnxruntime for Java, %s: %d passed, %d failed%n", provider, folders.length - failed, failed);
        System.exit(failed > 0 || folders.length == 0 ? 1 : 0);
    }
}
